using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Sends close_notify (RFC 8446, section 6.1) when the application shuts the sending half down, or when it disposes the stream and
/// the send buffer has room in time.
/// </summary>
internal sealed class CloseSender(TlsConnection connection, Socket socket, SendGate gate, OpenSslWriter writer)
{
    /// <summary>The time that <see cref="Close"/> waits for room in the send buffer. Without close_notify the peer would detect a truncation.</summary>
    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(3);

    /// <summary>Sends close_notify after all data. Nothing can be sent afterwards. Receiving is not affected.</summary>
    public async Task ShutdownAsync()
    {
        await gate.EnterAsync(CancellationToken.None).ConfigureAwait(false);
        try
        {
            gate.ThrowIfNotOpen();
            await writer.WriteAsync(static c => c.Shutdown(), gate.Disposed).ConfigureAwait(false);
            gate.Close();
        }
        finally
        {
            gate.AnswerAndExit();
        }
    }

    /// <summary>Sends close_notify if it was not sent, waiting at most three seconds for room, and ends all waits.</summary>
    public void Close()
    {
        if (TryEnter())
        {
            TrySend(() => socket.Poll(s_limit, SelectMode.SelectWrite));
            gate.ExitClosed();
        }

        gate.EndWaits();
    }

    /// <summary>Sends close_notify like <see cref="Close"/>, without blocking a thread.</summary>
    public async ValueTask CloseAsync()
    {
        if (TryEnter())
        {
            if (!TrySend(static () => false))
            {
                await SendLaterAsync().ConfigureAwait(false);
            }

            gate.ExitClosed();
        }

        await gate.EndWaitsAsync().ConfigureAwait(false);
    }

    /// <summary>Takes the last turn. Returns <see langword="false"/> if a send is in progress: the disposal aborts it, and the peer must detect a truncation.</summary>
    private bool TryEnter()
    {
        if (!gate.TryEnter())
        {
            return false;
        }

        if (gate.IsOpen)
        {
            gate.Close();
            return true;
        }

        gate.ExitClosed();
        return false;
    }

    /// <summary>Returns <see langword="false"/> if the send buffer is still full. A failure ends the attempt, because the connection ends anyway.</summary>
    private bool TrySend(Func<bool> waitForRoom)
    {
        if (connection.IsSocketClosed)
        {
            gate.Break();
            return true;
        }

        try
        {
            return connection.Shutdown().Status != NativeStatus.WantWrite
                || (waitForRoom() && connection.Shutdown().Status != NativeStatus.WantWrite);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or SocketException)
        {
            gate.Break();
            return true;
        }
    }

    private async Task SendLaterAsync()
    {
        using CancellationTokenSource limit = new(s_limit);
        try
        {
            await writer.WriteAsync(static c => c.Shutdown(), limit.Token).ConfigureAwait(false);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or OperationCanceledException)
        {
            gate.Break();
        }
    }
}
