using System.Net.Security;
using KernelTls.Tests;
using KernelTls.Weaving;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests what the log says about a woven library whose stream keeps it from kernel TLS.</summary>
public sealed class WovenFallbackTests
{
    /// <summary>The streams are those of the process, so the tests beside this one would log them too.</summary>
    [Fact]
    public Task The_stream_of_a_woven_library_is_logged_once() =>
        OwnProcess.RunAsync(typeof(WovenFallbackTests), nameof(Logged), (Application.DirectVariable, "1"));

    [Fact(Explicit = true)]
    public async Task Logged()
    {
        await FallBackAsync(new MemoryStream());
        await using Server server = await Server.StartAsync(TlsMode.DirectOpenSsl);
        await server.Events.WaitForAsync(e => IsOf(e, typeof(MemoryStream)), 1, "the stream of before the start");

        await FallBackAsync(new MemoryStream());
        await FallBackAsync(new BufferedStream(new MemoryStream()));
        await server.Events.WaitForAsync(e => IsOf(e, typeof(BufferedStream)), 1, "another stream");

        Server.Log.Entry[] entries = [.. server.Events.Entries.Where(e => e.Category.EndsWith("ProcessReport", StringComparison.Ordinal) && e.Level > LogLevel.Information)];
        Assert.Equal(2, entries.Length);
        Assert.All(entries, e => Assert.Equal(LogLevel.Warning, e.Level));
        Assert.All(entries, e => Assert.StartsWith(
            "KernelTls.AspNetCore.Tests is woven, but uses the stock TLS (NotSocketStream): ", e.Message, StringComparison.Ordinal));
    }

    private static bool IsOf(Server.Log.Entry entry, Type stream) => entry.Message.Contains($" is a {stream.FullName}.", StringComparison.Ordinal);

    /// <summary>Begins a handshake of a woven library over a stream that has no bytes.</summary>
    private static async Task FallBackAsync(Stream inner)
    {
        await using SslStream stream = WovenConstructors<WovenFallbackTests>.NewSslStream(inner);
        await Assert.ThrowsAnyAsync<Exception>(() => WovenMembers.AuthenticateAsClientAsync(
            stream, new SslClientAuthenticationOptions { TargetHost = "localhost" }, TestContext.Current.CancellationToken)).InTime("the handshake's failure");
    }
}
