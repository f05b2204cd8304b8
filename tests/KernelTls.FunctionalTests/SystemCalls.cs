using System.Net.Sockets;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>Provides system calls to compare with, without this library.</summary>
internal static partial class SystemCalls
{
    public const int TryAgain = 11;        // EAGAIN
    public const int InvalidArgument = 22; // EINVAL

    [LibraryImport("libc", EntryPoint = "sendfile", SetLastError = true)]
    public static partial nint SendFile(SafeSocketHandle socket, SafeFileHandle file, ref long offset, nint count);

    /// <summary>
    /// Makes the kernel, which has the sending key, send a record that OpenSSL would not send
    /// (Documentation/networking/tls.rst).
    /// </summary>
    /// <param name="socket">The socket, whose sending is in the kernel.</param>
    /// <param name="type">The content type of the record.</param>
    /// <param name="content">Its only byte.</param>
    public static unsafe void SendRecord(Socket socket, byte type, byte content)
    {
        ControlMessage control = new()
        {
            Length = (nuint)sizeof(nuint) + (2 * sizeof(int)) + sizeof(byte),
            Level = 282, // SOL_TLS
            Type = 1,    // TLS_SET_RECORD_TYPE
            RecordType = type,
        };
        Part part = new() { Base = &content, Length = 1 };
        Message message = new() { Parts = &part, PartCount = 1, Control = &control, ControlLength = (nuint)sizeof(ControlMessage) };
        Assert.Equal(1, SendMessage(socket.SafeHandle, message, 0));
    }

    [LibraryImport("libc", EntryPoint = "sendmsg", SetLastError = true)]
    private static partial nint SendMessage(SafeSocketHandle socket, in Message message, int flags);

    /// <summary>struct cmsghdr with its data.</summary>
    private struct ControlMessage
    {
        public nuint Length;
        public int Level;
        public int Type;
        public nuint RecordType;
    }

    /// <summary>struct iovec.</summary>
    private unsafe struct Part
    {
        public void* Base;
        public nuint Length;
    }

    /// <summary>struct msghdr.</summary>
    private unsafe struct Message
    {
        public void* Name;
        public uint NameLength;
        public Part* Parts;
        public nuint PartCount;
        public void* Control;
        public nuint ControlLength;
        public int Flags;
    }
}
