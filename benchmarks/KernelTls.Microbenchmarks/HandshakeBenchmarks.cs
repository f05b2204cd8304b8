using System.Net.Security;
using BenchmarkDotNet.Attributes;

namespace KernelTls.Microbenchmarks;

/// <summary>
/// Measures both ends of a connection: connect, handshake, one byte from the server (with the session tickets) and
/// close.
/// </summary>
public class HandshakeBenchmarks
{
    private readonly byte[] _byte = [42];
    private StreamPair _pair = null!;

    [ParamsSource(nameof(Modes))]
    public StreamMode Mode { get; set; }

    [Params(false, true)]
    public bool Resumed { get; set; }

    public static IEnumerable<StreamMode> Modes => StreamModes.Available;

    // In this process, BenchmarkDotNet does not wait for an asynchronous method. The first handshake creates the
    // session to resume.
    [GlobalSetup]
    public void SetUp()
    {
        _pair = new StreamPair(Mode, Resumed);
        HandshakeAsync().GetAwaiter().GetResult();
    }

    [Benchmark]
    public async Task HandshakeAsync()
    {
        (SslStream client, SslStream server) = await _pair.ConnectAsync();
        await server.WriteAsync(_byte);
        await client.ReadExactlyAsync(_byte);
        await client.DisposeAsync();
        await server.DisposeAsync();
    }

    [GlobalCleanup]
    public void CleanUp() => _pair.Dispose();
}
