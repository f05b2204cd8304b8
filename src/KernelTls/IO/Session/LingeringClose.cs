using System.Diagnostics;
using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Ends a connection after its stream was disposed, without anyone waiting for the peer.</summary>
/// <remarks>
/// <para>
/// Closing a socket with unread data, or data that arrives after that, resets the connection (RFC 1122, section
/// 4.2.2.13). The peer may then lose what it has not read yet: the alert that ended a handshake, or the last responses of
/// HTTP/2. This end therefore sends its FIN and discards incoming data until the peer closes as well, for at most one
/// second and at most 256 KiB.
/// </para>
/// <para>
/// Before that, close_notify may wait for space in the send buffer, and kernel TLS may hold records that TCP has no space for: it would
/// discard them with the socket, although writing them has succeeded. Both wait while the peer acknowledges data. If it acknowledges
/// nothing, close_notify waits for three seconds, and data for as long as TCP keeps that of a closed socket, about a minute.
/// </para>
/// <para>
/// All that happens on another descriptor of the socket, which this class owns. The stream's own is closed at once. At
/// most <see cref="MaxCount"/> connections are open in this way. The next one closes the oldest of them, so that peers who stay
/// cannot exhaust the descriptors of the process.
/// </para>
/// </remarks>
internal sealed class LingeringClose
{
    /// <summary>The number of connections that may be open after their streams were disposed.</summary>
    public const int MaxCount = 1024;

    private const int MaxBytes = 256 * 1024;

    private static readonly TimeSpan s_closeLimit = TimeSpan.FromSeconds(3);
    private static readonly TimeSpan s_leastPause = TimeSpan.FromMilliseconds(10);
    private static readonly TimeSpan s_mostPause = TimeSpan.FromMilliseconds(500);
    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(1);

    private static readonly Lock s_lock = new();
    private static readonly LinkedList<LingeringClose> s_open = [];

    private readonly Socket _socket;
    private readonly TlsConnection? _connection;
    private readonly bool _mayHoldData;
    private readonly LinkedListNode<LingeringClose> _node;
    private readonly TaskCompletionSource _ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private long _bytesLeft = MaxBytes;

    /// <param name="socket">The other descriptor.</param>
    /// <param name="connection">The connection that must still send close_notify, or <see langword="null"/>.</param>
    /// <param name="mayHoldData">Whether kernel TLS may hold data besides close_notify.</param>
    private LingeringClose(Socket socket, TlsConnection? connection, bool mayHoldData)
    {
        _socket = socket;
        _connection = connection;
        _mayHoldData = mayHoldData;
        _node = new LinkedListNode<LingeringClose>(this);
    }

    /// <summary>Gets or sets the time that data which kernel TLS may hold waits for a peer that acknowledges nothing. Tests shorten it.</summary>
    public static TimeSpan DataLimit { get; set; } = TimeSpan.FromMinutes(1);

    /// <summary>Gets the number of connections that are open after their streams were disposed.</summary>
    public static int Count
    {
        get
        {
            lock (s_lock)
            {
                return s_open.Count;
            }
        }
    }

    /// <summary>Sends this end's FIN and discards what has arrived. If the peer has not closed yet, the rest happens in the background.</summary>
    /// <param name="socket">The stream's socket.</param>
    /// <param name="ownsSocket">
    /// Whether the stream closes the socket. If so, it is closed here, because NetworkStream would first shut down both
    /// directions, and then data that arrives resets the connection.
    /// </param>
    public static void Begin(Socket socket, bool ownsSocket)
    {
        try
        {
            socket.Shutdown(SocketShutdown.Send);
            long left = MaxBytes;
            if (Discard(socket, ref left) && TryDuplicate(socket) is { } other)
            {
                if (ownsSocket)
                {
                    socket.Dispose();
                }

                new LingeringClose(other, connection: null, mayHoldData: false) { _bytesLeft = left }.Start();
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The peer reset the connection, or the socket was closed. Nothing more can be done.
        }
    }

    /// <summary>
    /// Sends close_notify as soon as there is room for it and kernel TLS holds no record, and then does the same as <see cref="Begin"/>.
    /// </summary>
    /// <param name="socket">The stream's socket.</param>
    /// <param name="connection">The connection. If the result is true, it is freed with the other descriptor.</param>
    /// <param name="mayHoldData">Whether kernel TLS sends, and may hold data besides close_notify.</param>
    /// <param name="ownsSocket">Whether the stream owns the socket, so that it is closed here.</param>
    /// <returns>False if there is no other descriptor. Nothing was changed then.</returns>
    public static bool TryBegin(Socket socket, TlsConnection connection, bool mayHoldData, bool ownsSocket)
    {
        Socket? other = null;
        TlsConnection? moved = null;
        try
        {
            other = TryDuplicate(socket);
            if (other is null)
            {
                return false;
            }

            moved = connection.MoveTo(other.SafeHandle);
            SafeSocketHandle handle = socket.SafeHandle;
            SocketReadiness.EndWaits(handle);
            if (ownsSocket)
            {
                // Reads that are pending end with the descriptor. They must not make .NET reset the connection.
                RuntimeInternals.TrackShutdown(handle);
                socket.Dispose();
            }

            new LingeringClose(other, moved, mayHoldData).Start();
            return true;
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException or IOException)
        {
            // See Begin.
            other?.Dispose();
            moved?.Dispose();
            return false;
        }
    }

    /// <summary>Returns a task that completes when the connections that are open now have ended.</summary>
    public static Task WhenAllEnded()
    {
        lock (s_lock)
        {
            return Task.WhenAll(s_open.Select(o => o._ended.Task));
        }
    }

    /// <summary>Discards what has arrived. Returns whether more may arrive: the peer has not closed, and may send more.</summary>
    private static unsafe bool Discard(Socket socket, ref long left)
    {
        long discarded;
        int errno = KtlsNative.KtlsNative_SocketDiscard(socket.SafeHandle, left, &discarded);
        left -= discarded;
        return errno == Errno.Again && left > 0;
    }

    /// <summary>
    /// Returns another descriptor of the socket, or null if the process has none left, or if its owner has set how it is to
    /// be closed (SO_LINGER).
    /// </summary>
    private static unsafe Socket? TryDuplicate(Socket socket)
    {
        int descriptor;
        if (socket.LingerState is { Enabled: true }
            || KtlsNative.KtlsNative_SocketDuplicate(socket.SafeHandle, &descriptor) != 0)
        {
            return null;
        }

        SafeSocketHandle handle = new(descriptor, ownsHandle: true);
        try
        {
            return new Socket(handle);
        }
        catch (SocketException)
        {
            handle.Dispose();
            throw;
        }
    }

    private void Start()
    {
        LingeringClose? oldest = null;
        lock (s_lock)
        {
            s_open.AddLast(_node);
            if (s_open.Count > MaxCount)
            {
                oldest = s_open.First!.Value;
                s_open.RemoveFirst();
            }
        }

        oldest?.Close();
        if (ExecutionContext.IsFlowSuppressed())
        {
            _ = RunAsync();
        }
        else
        {
            // Nothing of the caller may live as long as the peer wishes.
            using AsyncFlowControl flow = ExecutionContext.SuppressFlow();
            _ = RunAsync();
        }
    }

    private async Task RunAsync()
    {
        try
        {
            if (_connection is not null)
            {
                await CloseSendingAsync(_connection).ConfigureAwait(false);
                _socket.Shutdown(SocketShutdown.Send);
            }

            using CancellationTokenSource limit = new(s_limit);
            while (Discard(_socket, ref _bytesLeft))
            {
                await SocketReadiness.WaitToReadAsync(_socket.SafeHandle, limit.Token).ConfigureAwait(false);
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException or OperationCanceledException or IOException)
        {
            // The peer reset the connection, a newer one displaced it, or the time is over.
        }
        finally
        {
            Close();
            _connection?.Dispose();
            lock (s_lock)
            {
                _node.List?.Remove(_node);
            }

            _ended.SetResult();
        }
    }

    private async Task CloseSendingAsync(TlsConnection connection)
    {
        TimeSpan limit = _mayHoldData ? DataLimit : s_closeLimit;
        long acknowledged = -1;
        long progress = 0;
        TimeSpan pause = s_leastPause;
        while (connection.CloseSending() is { Status: NativeStatus.WantWrite } result)
        {
            if (result.Bytes != acknowledged)
            {
                acknowledged = result.Bytes;
                progress = Stopwatch.GetTimestamp();
                pause = s_leastPause;
            }
            else if (Stopwatch.GetElapsedTime(progress) > limit)
            {
                throw new IOException("The peer has stopped reading.");
            }

            await PauseAsync(pause).ConfigureAwait(false);
            pause = pause * 2 < s_mostPause ? pause * 2 : s_mostPause;
        }
    }

    private async Task PauseAsync(TimeSpan pause)
    {
        if (_mayHoldData)
        {
            // Kernel TLS may hold records while the socket has space, and no event tells when it holds none.
            await Task.Delay(pause).ConfigureAwait(false);
            return;
        }

        using CancellationTokenSource over = new(pause);
        await SocketReadiness.WaitToWriteAsync(_socket.SafeHandle, over.Token).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
    }

    private void Close()
    {
        SocketReadiness.EndWaits(_socket.SafeHandle);
        _socket.Dispose();
    }
}
