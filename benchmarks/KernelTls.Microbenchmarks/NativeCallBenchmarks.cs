using System.Net;
using System.Net.Sockets;
using BenchmarkDotNet.Attributes;
using KernelTls.Interop;

namespace KernelTls.Microbenchmarks;

/// <summary>
/// Measures the cost of a call to the native shim. The shim rejects these calls immediately because their size is 0.
/// </summary>
public unsafe class NativeCallBenchmarks
{
    private readonly Socket _socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly byte[] _buffer = new byte[1];

    [GlobalSetup]
    public void SetUp()
    {
        _ = KtlsPlatform.Probe();
        _socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        if (Bare() == 0 || WithHandle() == 0)
        {
            throw new InvalidOperationException("The shim did not refuse.");
        }
    }

    [Benchmark(Baseline = true)]
    public int Bare()
    {
        fixed (byte* text = _buffer)
        {
            return KtlsNative.KtlsNative_ErrorText(0, text, 0);
        }
    }

    /// <summary>Measures a call that holds a reference to the socket.</summary>
    [Benchmark]
    public int WithHandle()
    {
        int received;
        fixed (byte* buffer = _buffer)
        {
            return KtlsNative.KtlsNative_SocketReceive(_socket.SafeHandle, buffer, 0, &received);
        }
    }

    [GlobalCleanup]
    public void CleanUp() => _socket.Dispose();
}
