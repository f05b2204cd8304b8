using System.Runtime.InteropServices;

namespace KernelTls.ConformanceTests;

/// <summary>Makes system calls of this process fail. A filter is permanent, and the next one is put on top of it.</summary>
internal static partial class SeccompFilter
{
    private const ushort Load = 0x20, JumpIfEqual = 0x15, Return = 0x06;
    private const uint Allow = 0x7FFF0000, Fail = 0x00050000;

    // struct seccomp_data: nr at 0, arguments from 16, 8 bytes each, little-endian.
    private const uint Number = 0, FirstArgument = 16, SecondArgument = 24, ThirdArgument = 32;

    private static readonly bool s_isArm64 = RuntimeInformation.ProcessArchitecture == Architecture.Arm64;

    /// <summary>Makes every setsockopt of this level fail with this errno; if an option is given, only that one.</summary>
    public static void DenyOption(int level, int? option, int errno)
    {
        const uint Any = 0;
        uint setsockopt = s_isArm64 ? 208u : 54u;
        Install(
            [
                new(Load, 0, 0, Number), new(JumpIfEqual, 0, 5, setsockopt), new(Load, 0, 0, SecondArgument), new(JumpIfEqual, 0, 3, (uint)level),
                new(Load, 0, 0, ThirdArgument), new(JumpIfEqual, 0, (byte)(option is null ? 0 : 1), (uint?)option ?? Any),
                new(Return, 0, 0, Fail | (uint)errno), new(Return, 0, 0, Allow),
            ]);
    }

    /// <summary>Makes every send on this descriptor fail with this errno, whatever the call.</summary>
    public static void DenySends(int descriptor, int errno) =>
        Deny(descriptor, errno, s_isArm64 ? [64, 66, 71, 206, 211] : [1, 20, 40, 44, 46]); // write, writev, sendfile, sendto, sendmsg

    /// <summary>Makes every receive on this descriptor fail with this errno, whatever the call.</summary>
    public static void DenyReceives(int descriptor, int errno) =>
        Deny(descriptor, errno, s_isArm64 ? [63, 65, 207, 212] : [0, 19, 45, 47]); // read, readv, recvfrom, recvmsg

    private static void Deny(int descriptor, int errno, uint[] calls)
    {
        List<Filter> program = [new(Load, 0, 0, FirstArgument), new(JumpIfEqual, 0, (byte)(calls.Length + 1), (uint)descriptor), new(Load, 0, 0, Number)];
        for (int i = 0; i < calls.Length; i++)
        {
            program.Add(new(JumpIfEqual, (byte)(calls.Length - i), 0, calls[i]));
        }

        Install([.. program, new(Return, 0, 0, Allow), new(Return, 0, 0, Fail | (uint)errno)]);
    }

    private static unsafe void Install(Filter[] filters)
    {
        const int NoNewPrivileges = 38, SetModeFilter = 1, AllThreads = 1;
        fixed (Filter* program = filters)
        {
            FilterProgram whole = new() { Length = (ushort)filters.Length, Filters = program };
            Assert.Equal(0, prctl(NoNewPrivileges, 1, 0, 0, 0));
            Assert.Equal(0, syscall(s_isArm64 ? 277 : 317, SetModeFilter, AllThreads, &whole));
        }
    }

    [LibraryImport("libc")]
    private static partial int prctl(int option, nuint a, nuint b, nuint c, nuint d);

    [LibraryImport("libc")]
    private static unsafe partial nint syscall(nint number, nint operation, nint flags, FilterProgram* program);

    [StructLayout(LayoutKind.Sequential)]
    private readonly struct Filter(ushort code, byte ifTrue, byte ifFalse, uint k)
    {
        public readonly ushort Code = code;
        public readonly byte IfTrue = ifTrue;
        public readonly byte IfFalse = ifFalse;
        public readonly uint K = k;
    }

    [StructLayout(LayoutKind.Sequential)]
    private unsafe struct FilterProgram
    {
        public ushort Length;
        public Filter* Filters;
    }
}
