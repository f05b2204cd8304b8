using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

// The end of the sending half when the stream is disposed: close_notify, if there is room for it in time.
internal sealed partial class TlsSender
{
    /// <summary>How long closing waits for room in the send buffer, so that the peer can tell the end from a truncation.</summary>
    internal static readonly TimeSpan CloseLimit = TimeSpan.FromSeconds(3);

    /// <summary>Sends close_notify if it was not sent, waiting at most <see cref="CloseLimit"/>, and ends all waits.</summary>
    public void Close()
    {
        if (TryEnterToClose())
        {
            TryCloseNotify(() => _socket.Poll(CloseLimit, SelectMode.SelectWrite));
            _gate.Release();
        }

        _disposed.Cancel();
    }

    /// <summary>As <see cref="Close"/>, without blocking a thread.</summary>
    public async ValueTask CloseAsync()
    {
        if (TryEnterToClose())
        {
            if (!TryCloseNotify(static () => false))
            {
                await CloseNotifyLaterAsync().ConfigureAwait(false);
            }

            _gate.Release();
        }

        await _disposed.CancelAsync().ConfigureAwait(false);
    }

    /// <summary>A send in progress means that the stream is disposed to abort it: the peer is to see a truncation.</summary>
    private bool TryEnterToClose()
    {
        if (!_gate.Wait(0))
        {
            return false;
        }

        if (_state == State.Open)
        {
            _state = State.Closed;
            return true;
        }

        _gate.Release();
        return false;
    }

    /// <summary>False: the send buffer is still full. Failures end the attempt: the connection is going away anyhow.</summary>
    private bool TryCloseNotify(Func<bool> waitForRoom)
    {
        if (_connection.IsSocketClosed)
        {
            _state = State.Broken;
            return true;
        }

        try
        {
            return _connection.Shutdown().Status != NativeStatus.WantWrite
                || (waitForRoom() && _connection.Shutdown().Status != NativeStatus.WantWrite);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or SocketException)
        {
            _state = State.Broken;
            return true;
        }
    }

    private async Task CloseNotifyLaterAsync()
    {
        using CancellationTokenSource limit = new(CloseLimit);
        try
        {
            await UntilWrittenAsync(static c => c.Shutdown(), limit.Token).ConfigureAwait(false);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or OperationCanceledException)
        {
            _state = State.Broken;
        }
    }
}
