using System.Diagnostics;
using System.Runtime.InteropServices;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a container's seccomp profile that denies the options of kernel TLS, and a sandbox that does not know them, have their own
/// reasons, which differ from a missing module and an old kernel. A filter is permanent, so each case runs in a separate process.
/// </summary>
public partial class SeccompTests
{
    private const string DenyVariable = "KERNELTLS_SECCOMP_DENY";
    private const int Tcp = 6;
    private const int Tls = 282;

    [Theory]
    [InlineData(Tcp, 1, KtlsFallbackReason.NotPermitted)]
    [InlineData(Tcp, 13, KtlsFallbackReason.NotPermitted)]
    [InlineData(Tcp, 92, KtlsFallbackReason.UlpNotSupported)]
    [InlineData(Tls, 1, KtlsFallbackReason.NotPermitted)]
    public async Task A_denied_option_is_a_reason_of_its_own(int level, int errno, KtlsFallbackReason expected)
    {
        Assert.SkipWhen(level == Tls && !KtlsPlatform.Probe().IsSupported, "Without a tls module no key is ever tried.");
        ProcessStartInfo start = new(
            "dotnet",
            [typeof(SeccompTests).Assembly.Location, "-explicit", "only", "-method", $"{typeof(SeccompTests).FullName}.{nameof(Deny_and_ask)}"])
        {
            RedirectStandardOutput = true,
        };
        start.Environment[DenyVariable] = $"{level} {errno} {(int)expected}";
        using Process run = Process.Start(start)!;
        string said = await run.StandardOutput.ReadToEndAsync(TestContext.Current.CancellationToken).Within(4 * Limits.Wait, "the filtered process");
        await run.WaitForExitAsync(TestContext.Current.CancellationToken).InTime("the filtered process to end");
        Assert.True(run.ExitCode == 0 && said.Contains("Total: 1,", StringComparison.Ordinal), said);
    }

    /// <summary>Runs in the separate process.</summary>
    [Fact(Explicit = true)]
    public void Deny_and_ask()
    {
        int[] deny = [.. Environment.GetEnvironmentVariable(DenyVariable)!.Split(' ').Select(int.Parse)];
        Deny(deny[0], deny[1]);

        Assert.Equal((KtlsFallbackReason)deny[2], KtlsPlatform.Probe().NotSupportedReason);
        Assert.Contains($"errno {deny[1]}", KtlsPlatform.Probe().NotSupportedDetail, StringComparison.Ordinal);
    }

    /// <summary>
    /// Makes every setsockopt of this level fail with this errno, for all threads; for TCP only TCP_ULP.
    /// </summary>
    private static unsafe void Deny(int level, int errno)
    {
        const ushort Load = 0x20, JumpIfEqual = 0x15, Return = 0x06;
        const uint Allow = 0x7FFF0000, Fail = 0x00050000, TcpUlp = 31;
        (int setsockopt, int seccomp) = RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? (208, 277) : (54, 317);

        // struct seccomp_data: nr at 0, arguments from 16, 8 bytes each, little-endian.
        Filter* program = stackalloc Filter[]
        {
            new(Load, 0, 0, 0), new(JumpIfEqual, 0, 5, (uint)setsockopt), new(Load, 0, 0, 24), new(JumpIfEqual, 0, 3, (uint)level),
            new(Load, 0, 0, 32), new(JumpIfEqual, 0, (byte)(level == Tcp ? 1 : 0), TcpUlp),
            new(Return, 0, 0, Fail | (uint)errno), new(Return, 0, 0, Allow),
        };
        FilterProgram whole = new() { Length = 8, Filters = program };
        const int NoNewPrivileges = 38, SetModeFilter = 1, AllThreads = 1;
        Assert.Equal(0, prctl(NoNewPrivileges, 1, 0, 0, 0));
        Assert.Equal(0, syscall(seccomp, SetModeFilter, AllThreads, &whole));
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
