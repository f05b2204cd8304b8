using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests the lines of KERNELTLS_LOG=1, in processes of their own: the variable is read once.</summary>
public class ProcessLogTests
{
    [Fact]
    public Task Each_kind_of_connection_is_a_line_once() =>
        OwnProcess.RunAsync(typeof(ProcessLogTests), nameof(Lines), ("KERNELTLS_LOG", "1"));

    [Fact]
    public Task Without_the_variable_there_is_no_line() => OwnProcess.RunAsync(typeof(ProcessLogTests), nameof(NoLines));

    [Fact(Explicit = true)]
    public async Task Lines()
    {
        string[] lines = await ConnectAsync();

        Assert.Equal(
            [
                "KernelTls: connections: send=openssl (DisabledByMode) receive=openssl (DisabledByMode). client, Tls13",
                "KernelTls: connections: send=openssl (DisabledByMode) receive=openssl (DisabledByMode). server, Tls13",
                "KernelTls: fallback Some.Library: NotSocketStream. client. The stream under the TLS stream is not exactly a NetworkStream: remove "
                    + "wrappers (proxies, counters, buffers), or put them above the TLS stream. The inner stream is a System.IO.MemoryStream.",
            ],
            lines.Order(StringComparer.Ordinal));
    }

    [Fact(Explicit = true)]
    public async Task NoLines() => Assert.Empty(await ConnectAsync());

    /// <summary>Opens two connections on OpenSSL, and one that falls back, and returns what was written to the standard error.</summary>
    private static async Task<string[]> ConnectAsync()
    {
        using StringWriter errors = new();
        TextWriter standard = Console.Error;
        Console.SetError(TextWriter.Synchronized(errors));
        try
        {
            for (int i = 0; i < 2; i++)
            {
                await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13);
            }

            KtlsOptions options = new() { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl, Library = "Some.Library" };
            await using KtlsStream wrapped = new(new MemoryStream(), false, options);
            await Assert.ThrowsAnyAsync<IOException>(() => wrapped.AuthenticateAsClientAsync("localhost"));
        }
        finally
        {
            Console.SetError(standard);
        }

        return errors.ToString().Split('\n', StringSplitOptions.RemoveEmptyEntries);
    }
}
