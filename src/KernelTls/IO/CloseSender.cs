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
            gate.AnswerAndExit();
        }
    }

    /// <summary>Sends close_notify if it was not sent, without waiting, and ends all waits.</summary>
    /// <returns>False if there is no room for it: <see cref="LingeringClose"/> may send it later.</returns>
    public bool Close()
    {
        bool isDone = TrySend();
        gate.EndWaits();
        return isDone;
    }

    /// <summary>Does the same as <see cref="Close"/>, but continues the waiting operations on other threads.</summary>
    public async ValueTask<bool> CloseAsync()
    {
        bool isDone = TrySend();
        await gate.EndWaitsAsync().ConfigureAwait(false);
        return isDone;
    }

    /// <summary>
    /// Takes the last turn. If a send is in progress, the disposal aborts it, and nothing is sent: the peer must detect a truncation. A
    /// failure ends the attempt, because the connection ends anyway.
    /// </summary>
    private bool TrySend()
    {
        if (!gate.TryEnter())
        {
            return true;
        }

        try
        {
            if (!gate.IsOpen)
            {
                return true;
            }

            gate.Close();
            if (!connection.IsSocketClosed)
            {
                return connection.Shutdown().Status != NativeStatus.WantWrite;
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
