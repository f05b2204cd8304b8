using System.Diagnostics.CodeAnalysis;
using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>
/// Wakes a send that waits in .NET's Socket although the socket has room. Kernel TLS refuses a record with EAGAIN, too, if it gets no
/// memory for it: the budget of all TCP sockets (net.ipv4.tcp_mem) or of the memory cgroup is used up. If the send buffer is empty
/// by then, no acknowledgement arrives, so no event ever tells .NET to try again. (Plain TCP lets each socket have a few KiB beyond
/// the budget.)
/// </summary>
/// <param name="socket">The socket, on which the kernel encrypts.</param>
[SuppressMessage("Design", "CA1001", Justification = "A timer that is not armed is held by nothing, and a stream may be closed when its session is gone already.")]
internal sealed class SendWatch(Socket socket)
{
    private const int ProtocolTcp = 6;          // IPPROTO_TCP
    private const int NotSentLowWaterMark = 25; // TCP_NOTSENT_LOWAT

    private static readonly TimeSpan s_leastPause = TimeSpan.FromMilliseconds(50);
    private static readonly TimeSpan s_mostWithoutMemory = TimeSpan.FromMilliseconds(250);
    private static readonly TimeSpan s_mostWithoutRoom = TimeSpan.FromSeconds(2);

    private Timer? _timer;
    private TimeSpan _pause;
    private volatile bool _isWaiting;

    /// <summary>Begins to watch: a send waits.</summary>
    public void Start()
    {
        _pause = s_leastPause;
        _isWaiting = true;
        if (_timer is null)
        {
            bool flows = !ExecutionContext.IsFlowSuppressed();
            using AsyncFlowControl flow = flows ? ExecutionContext.SuppressFlow() : default;
            _timer = new Timer(static watch => ((SendWatch)watch!).Check(), this, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }

        _timer.Change(_pause, Timeout.InfiniteTimeSpan);
    }

    /// <summary>Ends the watch: the send has completed.</summary>
    public void Stop()
    {
        _isWaiting = false;
        _timer!.Change(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
    }

    private void Check()
    {
        TimeSpan most = s_mostWithoutRoom;
        try
        {
            if (_isWaiting && SocketReadiness.IsWritable(socket))
            {
                Wake();
                most = s_mostWithoutMemory;
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The send ends with the socket.
            return;
        }

        if (_isWaiting)
        {
            _pause = _pause * 2 < most ? _pause * 2 : most;
            _timer!.Change(_pause, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>Makes the kernel report once more that the socket is writable, as it does whenever this option is set (tcp.c).</summary>
    private void Wake()
    {
        Span<byte> value = stackalloc byte[sizeof(int)];
        _ = socket.GetRawSocketOption(ProtocolTcp, NotSentLowWaterMark, value);
        socket.SetRawSocketOption(ProtocolTcp, NotSentLowWaterMark, value);
    }
}
