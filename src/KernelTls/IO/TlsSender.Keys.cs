using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Which TLS 1.3 keys of a connection can be changed where they are now.</summary>
/// <param name="Sending">This end's, by a KeyUpdate.</param>
/// <param name="Receiving">The peer's, when its KeyUpdate comes.</param>
internal readonly record struct KeyUpdates(bool Sending, bool Receiving);

// Changing the sending key (RFC 8446, section 4.6.3): asked for by the application, by the peer, or by the record count.
internal sealed partial class TlsSender
{
    /// <summary>Sends a KeyUpdate, after the write in progress; every later byte is under the new key.</summary>
    /// <param name="requestPeer">Asks the peer to change its key, too.</param>
    /// <param name="cancellationToken">Ends the wait for its turn and for room, which leaves the connection as it was.</param>
    public async ValueTask UpdateKeysAsync(bool requestPeer, CancellationToken cancellationToken)
    {
        try
        {
            await _gate.WaitAsync(cancellationToken).ConfigureAwait(false);
            bool intact = true;
            try
            {
                ThrowIfNotOpen();
                if (!_keyUpdates.Sending || (requestPeer && !_keyUpdates.Receiving))
                {
                    throw TlsErrors.CannotUpdate();
                }

                await UntilRoomAsync(cancellationToken).ConfigureAwait(false);
                intact = false;
                bool updated = await TryUpdateKeyAsync(requestPeer, KeyUpdateCause.Application).ConfigureAwait(false);
                intact = true;
                if (!updated)
                {
                    throw TlsErrors.HalfMessage();
                }
            }
            finally
            {
                Leave(intact);
            }
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
    }

    /// <summary>The peer asked for a KeyUpdate in return: sent now, or after the send in progress.</summary>
    public void AnswerKeyUpdate()
    {
        _keyUpdateDue = true;
        if (_gate.Wait(0))
        {
            Leave(sent: true);
        }
    }

    /// <summary>
    /// How many of so many bytes may be sent next, charged to the key. Inside the gate. An answer to the peer's KeyUpdate goes
    /// first. With a spent key it is known after a KeyUpdate; where there can be none, the sending half is closed.
    /// </summary>
    private ValueTask<long> AllowAsync(long bytes, CancellationToken cancellationToken)
    {
        long allowed = AllowNow(bytes);
        return allowed > 0 ? ValueTask.FromResult(allowed) : AllowLaterAsync(bytes, cancellationToken);
    }

    /// <summary>As <see cref="AllowAsync"/>; 0: a KeyUpdate goes first.</summary>
    private long AllowNow(long bytes)
    {
        ThrowIfAbandoned();
        long allowed = AnswerGoesFirst ? 0 : _budget.Allow(Math.Min(bytes, MostAtOnce));
        _budget.Take(allowed);
        return allowed;
    }

    /// <summary>Where there can be no answer, what is under way still arrives, under the key that the peer knows.</summary>
    private bool AnswerGoesFirst => _keyUpdateDue && _keyUpdates.Sending;

    /// <summary>As <see cref="AllowAsync"/>, blocking; the socket's SendTimeout limits the wait.</summary>
    private long Allow(long bytes)
    {
        long allowed = AllowNow(bytes);
        return allowed > 0 ? allowed : AllowLater(bytes);
    }

    private long AllowLater(long bytes)
    {
        long allowed = 0;
        SocketTimeouts.Within(
            _socket.SendTimeout,
            "Unable to write data to the transport connection",
            async limit => allowed = await AllowLaterAsync(bytes, limit).ConfigureAwait(false));
        return allowed;
    }

    private async ValueTask<long> AllowLaterAsync(long bytes, CancellationToken cancellationToken)
    {
        if (AnswerGoesFirst)
        {
            await UntilRoomAsync(cancellationToken).ConfigureAwait(false);
            await AnswerAsync().ConfigureAwait(false);
            ThrowIfNotOpen();
        }

        bytes = Math.Min(bytes, MostAtOnce);
        if (_budget.Allow(bytes) == 0)
        {
            if (!_keyUpdates.Sending)
            {
                await UntilWrittenAsync(static c => c.Shutdown(), cancellationToken).ConfigureAwait(false);
                _state = State.Spent;
                throw TlsErrors.RecordLimit();
            }

            await UntilRoomAsync(cancellationToken).ConfigureAwait(false);
            if (!await TryUpdateKeyAsync(requestPeer: false, KeyUpdateCause.RecordLimit).ConfigureAwait(false))
            {
                throw TlsErrors.HalfMessage();
            }
        }

        long allowed = _budget.Allow(bytes);
        _budget.Take(allowed);
        return allowed;
    }

    /// <summary>Sends a KeyUpdate. False: half of a handshake message of the peer's is in, and nothing was sent.</summary>
    private async Task<bool> TryUpdateKeyAsync(bool requestPeer, KeyUpdateCause cause)
    {
        bool halfMessage = false;
        await UntilWrittenAsync(
            c =>
            {
                if (!c.TryUpdateKey(requestPeer, out NativeResult result))
                {
                    throw TlsErrors.Rekey(null);
                }

                halfMessage = result.Status == NativeStatus.WantRead;
                return halfMessage ? default : result;
            },
            _disposed.Token).ConfigureAwait(false);
        if (!halfMessage)
        {
            Renewed(cause);
        }

        return !halfMessage;
    }

    private void Renewed(KeyUpdateCause cause)
    {
        _budget.Renew();
        KtlsEventSource.Log.KeyUpdated(cause);
        KtlsMeter.KeyUpdated(cause);
    }

    /// <summary>
    /// While OpenSSL has begun a KeyUpdate and not got it out, it reads nothing either; two ends in that state would wait for
    /// each other. So it begins when there is room, of which the socket reports more than a KeyUpdate needs.
    /// </summary>
    private async ValueTask UntilRoomAsync(CancellationToken cancellationToken)
    {
        if (!_socket.Poll(TimeSpan.Zero, SelectMode.SelectWrite))
        {
            await WaitWritableAsync(cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task AnswerAndReleaseAsync()
    {
        await AnswerAsync().ConfigureAwait(false);
        Release();
    }

    /// <summary>Answers the peer, inside the gate. Never fails: what goes wrong is the connection's failure.</summary>
    private async Task AnswerAsync()
    {
        _keyUpdateDue = false;
        try
        {
            await UntilRoomAsync(_disposed.Token).ConfigureAwait(false);

            // Where half of a message is in, the read that takes the rest asks for this again.
            await TryUpdateKeyAsync(requestPeer: false, KeyUpdateCause.Peer).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            _state = State.Broken;
            Volatile.Write(ref _failure, _keyUpdates.Sending || e is KtlsRekeyException ? e : TlsErrors.Rekey(e));
        }
    }
}
