using System.Net;
using System.Net.Sockets;
using BenchmarkDotNet.Attributes;
using KernelTls.Interop;

namespace KernelTls.Microbenchmarks;

/// <summary>What a call of the shim costs: calls that it refuses at once, because of a size of 0.</summary>
public unsafe class NativeCallBenchmarks
{
    private readonly Socket _socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly byte[] _buffer = new byte[1];

    [GlobalSetup]
    public void SetUp()
    {
        _ = KtlsPlatform.IsSupported;
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

    /// <summary>With a reference taken to the socket for the time of the call.</summary>
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
