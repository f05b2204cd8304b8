using System.Net.Security;
using BenchmarkDotNet.Attributes;

namespace KernelTls.Microbenchmarks;

/// <summary>Measures one write at one end and reads at the other end until all data has arrived.</summary>
public class StreamBenchmarks
{
    private byte[] _sent = [];
    private byte[] _received = [];
    private StreamPair _pair = null!;
    private SslStream _client = null!;
    private SslStream _server = null!;

    [ParamsSource(nameof(Modes))]
    public StreamMode Mode { get; set; }

    [Params(64, 1024, 4096, 16_384, 65_536)]
    public int Size { get; set; }

    public static IEnumerable<StreamMode> Modes => StreamModes.Available;

    // In this process, BenchmarkDotNet does not wait for an asynchronous method.
    [GlobalSetup]
    public void SetUp()
    {
        _sent = new byte[Size];
        _received = new byte[Size];
        _pair = new StreamPair(Mode, resumes: false);
        (_client, _server) = _pair.ConnectAsync().GetAwaiter().GetResult();
    }

    [Benchmark]
    public async Task WriteAndReadAsync()
    {
        Task writing = _server.WriteAsync(_sent).AsTask();
        await _client.ReadExactlyAsync(_received);
        await writing;
    }

    [GlobalCleanup]
    public void CleanUp()
    {
        _client.Dispose();
        _server.Dispose();
        _pair.Dispose();
    }
}
