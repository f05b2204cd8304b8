using KernelTls.Tests;

namespace KernelTls.Weave.Tests;

/// <summary>
/// Tests a woven program that does not know the library, in a separate process: with the toggle off, on OpenSSL, and in a kernel with TLS.
/// It prints the same about each connection as the same program without weaving.
/// </summary>
[Trait("cell", "programs")]
public sealed class WovenProgramTests : IDisposable
{
    private static readonly string[] s_streams = ["options", "name", "delegate", "subclass", "synchronous", "truncated"];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(null)]
    [InlineData("0")]
    public async Task With_the_toggle_off_or_unset_every_stream_is_the_stock_one(string? toggle)
    {
        (string, string)[] environment = toggle is null ? [] : [(Application.KernelVariable, toggle)];
        string stock = await RunAsync(Program().Image, environment);
        string woven = await RunAsync(Program().Weave().Image!, environment);

        // The base of a subclass is the library's class, with the toggle on or off.
        string reason = toggle is null ? "NotEnabled" : "DisabledByToggle";
        Assert.Equal(
            stock.Replace(
                "subclass: ping 85 SslStream; SslStream",
                $"subclass: ping 85 KtlsStream send=managed ({reason}) receive=managed ({reason}); SslStream",
                StringComparison.Ordinal),
            woven);
        Assert.Contains("truncated: ping 85 SslStream; SslStream", stock, StringComparison.Ordinal);
    }

    [Fact]
    public async Task On_OpenSSL_every_stream_is_the_librarys() => Assert.Equal(
        Expected("send=openssl (NotEnabled) receive=openssl (NotEnabled)"),
        await RunAsync(Program().Weave().Image!, (Application.DirectVariable, "1")));

    [Fact]
    public async Task With_the_toggle_every_stream_is_in_the_kernel_or_says_why_not()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        string offload = KtlsPlatform.Probe().IsSupported
            ? $"send=kernel receive={(KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) ? "openssl (OpenSslTooOld)" : "kernel")}"
            : $"send=managed ({KtlsPlatform.Probe().NotSupportedReason}) receive=managed ({KtlsPlatform.Probe().NotSupportedReason})";
        TlsStatistics before = KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;

        string said = await RunAsync(Program().Weave().Image!, (Application.KernelVariable, "1"));
        Assert.Equal(Expected(offload), said.Replace(" without padding", "", StringComparison.Ordinal));

        // Both ends of six streams, of three requests, and of one request that fails after the server's handshake.
        TlsStatistics after = KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;
        Assert.InRange(after.SendSoftware - before.SendSoftware, KtlsPlatform.Probe().IsSupported ? 18 : 0, KtlsPlatform.Probe().IsSupported ? long.MaxValue : 0);
    }

    [Fact]
    public async Task An_end_without_close_notify_is_an_error_where_the_application_says_so()
    {
        using Application application = WovenProgram.Start(
            _directory, "Talk", Program().Weave().Image!, [], [(Application.DirectVariable, "1")], "\"KernelTls.Weaving.RequireCloseNotify\": true");

        Assert.NotEqual(0, await application.ExitAsync());

        Assert.Contains("synchronous: ping", application.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("truncated: ping", application.Said, StringComparison.Ordinal);
    }

    /// <summary>The peers do not pad, so that the kernel expects no padding whether it is to expect none always or by the counter.</summary>
    [Theory]
    [InlineData("Npgsql; talk")]
    [InlineData("Npgsql;Talk.More")]
    public async Task Woven_streams_expect_no_padding(string names)
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        using Application application = WovenProgram.Start(
            _directory,
            "Talk",
            Program().Weave().Image!,
            [],
            [(Application.KernelVariable, "1")],
            $"\"KernelTls.Weaving.ExpectNoPadding\": \"{names}\"");

        string said = await application.SucceedAsync();

        Assert.Equal(
            KtlsPlatform.Probe().CanExpectNoPadding ? s_streams.Length : 0,
            said.Split('\n').Count(line => line.Contains(" without padding", StringComparison.Ordinal)));
    }

    [Theory]
    [InlineData("Npgsql; talk", true)]
    [InlineData("None", false)]
    public async Task Assemblies_that_the_application_names_leave_their_sockets_usable(string names, bool namesIt)
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        using Application application = WovenProgram.Start(
            _directory,
            "Talk",
            Program().Weave().Image!,
            [],
            [(Application.KernelVariable, "1"), (Application.DirectVariable, "1")],
            $"\"KernelTls.Weaving.AllowSocketReuse\": \"{names}\"");

        string said = await application.SucceedAsync();

        string[] streams = [.. said.Split('\n').Where(line => s_streams.Any(s => line.StartsWith($"{s}: ", StringComparison.Ordinal)))];
        Assert.Equal(s_streams.Length, streams.Length);
        Assert.Equal(namesIt ? s_streams.Length : 0, streams.Count(line => line.Contains("send=openssl (SocketReused)", StringComparison.Ordinal)));
    }

    private static Compiled Program() => WovenProgram.Compile("Talk.cs", "Talk");

    private static string Expected(string offload)
    {
        string stream = $"KtlsStream {offload}";
        return string.Concat(s_streams.Select(s => $"{s}: ping 85 {stream}; {stream}\n")) + $"""
            HttpClientHandler: ok Talk; {stream}
            SocketsHttpHandler True: ok Talk; {stream}
            ConnectCallback: ok Talk; {stream}
            connected by it: 1, it is the application's: True
            HttpClient: AuthenticationException

            """;
    }

    private Task<string> RunAsync(byte[] image, params (string, string)[] environment) =>
        WovenProgram.RunAsync(_directory, "Talk", image, [], environment);
}
