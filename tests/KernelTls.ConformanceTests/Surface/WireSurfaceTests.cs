using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares what a peer sees with what it sees of SslStream: every message and record of the handshake, decrypted, alerts,
/// tickets and the end of the connection, in each configuration of <see cref="WireCases"/>.
/// </summary>
[Trait("loop", "outer-kernel")]
public class WireSurfaceTests(ITestOutputHelper output)
{
    public static TheoryData<TlsMode> Costly => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(Costly))]
    public Task A_peer_sees_what_it_sees_of_SslStream(TlsMode mode) => SurfaceRun.CompareAsync(
        output, SurfaceDifferences.Wire, mode, WireCases.All, static (each, engine) => each.RunAsync(engine));

    [Fact]
    public void Each_option_of_this_runtime_is_in_a_configuration()
    {
        foreach ((bool isServer, Type options) in new[]
        {
            (false, typeof(SslClientAuthenticationOptions)), (true, typeof(SslServerAuthenticationOptions)),
        })
        {
            string[] named = [.. WireCases.All.Where(c => c.IsServer == isServer).Select(c => c.Name.Split(',')[0])];
            Assert.Empty(options.GetProperties().Select(p => p.Name).Except(named));
        }
    }
}
