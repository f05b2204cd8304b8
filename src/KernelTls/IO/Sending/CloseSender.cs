using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Sends close_notify (RFC 8446, section 6.1) when the application shuts the sending half down, or when it disposes the stream.
/// </summary>
internal sealed class CloseSender(TlsConnection connection, SendGate gate, OpenSslWriter writer)
{
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
            gate.Exit();
        }
    }

    /// <summary>Sends close_notify if it was not sent, without waiting, and ends all waits.</summary>
    /// <param name="endsSocket">Whether the caller closes the socket or its sending half next. If so, the FIN follows in the same segment.</param>
    /// <returns>
    /// False if there is no room for it, or if kernel TLS holds records that the FIN would discard:
    /// <see cref="LingeringClose"/> may complete it later.
    /// </returns>
    public bool Close(bool endsSocket)
    {
        bool isDone = TrySend(endsSocket);
        gate.EndWaits();
        return isDone;
    }

    /// <summary>Does the same as <see cref="Close"/>, but continues the waiting operations on other threads.</summary>
    public async ValueTask<bool> CloseAsync(bool endsSocket)
    {
        bool isDone = TrySend(endsSocket);
        await gate.EndWaitsAsync().ConfigureAwait(false);
        return isDone;
    }

    /// <summary>
    /// Takes the last turn. If a send is in progress, the disposal aborts it, and nothing is sent: the peer must detect a truncation. A
    /// failure ends the attempt, because the connection ends anyway.
    /// </summary>
    private bool TrySend(bool endsSocket)
    {
        if (!gate.TryEnter())
        {
            return true;
        }

        try
        {
            // After ShutdownAsync, kernel TLS may still hold what was sent before.
            if (!gate.IsOpen && !(endsSocket && gate.IsClosed))
            {
                return true;
            }

            if (gate.IsOpen)
            {
                gate.Close();
            }

            if (!connection.IsSocketClosed)
            {
                NativeResult result = endsSocket ? connection.CloseSending() : connection.Shutdown();
                return result.Status != NativeStatus.WantWrite;
            }
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException)
        {
            // Broken below.
        }
        finally
        {
            gate.ExitClosed();
        }

        gate.Break();
        return true;
    }
}
