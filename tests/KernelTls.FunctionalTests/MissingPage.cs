using System.ComponentModel;
using System.Runtime.InteropServices;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Creates a page of memory that is missing until <see cref="Supply"/>. A system call that reads it stops inside the
/// kernel with the locks that it holds (userfaultfd; faults in the kernel require root).
/// </summary>
internal sealed unsafe partial class MissingPage : IDisposable
{
    private const int ReadWrite = 3;        // PROT_READ | PROT_WRITE
    private const int PrivateMemory = 0x22; // MAP_PRIVATE | MAP_ANONYMOUS
    private const int CloseOnExec = 0x80000;
    private const nuint Api = 0xc018aa3f;
    private const nuint Register = 0xc020aa00;
    private const nuint ZeroPage = 0xc020aa04;
    private const ulong ApiVersion = 0xaa;
    private const ulong Missing = 1;
    private const short Readable = 1; // POLLIN

    private readonly SafeFileHandle _faults;
    private readonly void* _page;
    private readonly nuint _size = (nuint)Environment.SystemPageSize;

    public MissingPage()
    {
        _page = Map(null, _size, ReadWrite, PrivateMemory, -1, 0);
        Check((nint)_page);
        nint faults = SystemCall(RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? 282 : 323, CloseOnExec);
        Check(faults);
        _faults = new SafeFileHandle(faults, ownsHandle: true);
        Tell(Api, ApiVersion, 0, 0);
        Tell(Register, (ulong)_page, _size, Missing);
    }

    public ReadOnlySpan<byte> Memory => new(_page, (int)_size);

    /// <summary>Waits until a reader has met the missing page.</summary>
    public void AwaitReader()
    {
        PollEntry entry = new() { Descriptor = (int)_faults.DangerousGetHandle(), Events = Readable };
        int ready = Poll(&entry, 1, (int)Limits.Wait.TotalMilliseconds);
        Check(ready);
        Assert.True(ready == 1, "Nobody read the missing page in time.");
    }

    /// <summary>Supplies the page, filled with zeros.</summary>
    public void Supply() => Tell(ZeroPage, (ulong)_page, _size, 0);

    public void Dispose()
    {
        // This also supplies the page to a reader that still waits for it.
        _faults.Dispose();
        Check(Unmap(_page, _size));
    }

    private void Tell(nuint request, ulong first, ulong second, ulong third)
    {
        ulong* arguments = stackalloc ulong[] { first, second, third, 0 };
        Check(Control(_faults, request, arguments));
    }

    private static void Check(nint result)
    {
        if (result == -1)
        {
            throw new Win32Exception(Marshal.GetLastPInvokeError());
        }
    }

    [LibraryImport("libc", EntryPoint = "mmap", SetLastError = true)]
    private static partial void* Map(void* address, nuint length, int protection, int flags, int descriptor, nint offset);

    [LibraryImport("libc", EntryPoint = "munmap", SetLastError = true)]
    private static partial int Unmap(void* address, nuint length);

    [LibraryImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static partial nint SystemCall(nint number, nint flags);

    [LibraryImport("libc", EntryPoint = "ioctl", SetLastError = true)]
    private static partial int Control(SafeFileHandle descriptor, nuint request, void* arguments);

    [LibraryImport("libc", EntryPoint = "poll", SetLastError = true)]
    private static partial int Poll(PollEntry* entries, nuint count, int milliseconds);

    [StructLayout(LayoutKind.Sequential)]
    private struct PollEntry
    {
        public int Descriptor;
        public short Events;
        public short Returned;
    }
}
