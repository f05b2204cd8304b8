using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Specifies the TLS 1.3 keys of a connection that can be changed in their data path.</summary>
/// <param name="Sending">Whether this end can change its key by a KeyUpdate.</param>
/// <param name="Receiving">Whether the peer's key can change when its KeyUpdate arrives.</param>
internal readonly record struct KeyUpdates(bool Sending, bool Receiving);

/// <summary>
/// Counts the records of the sending key and changes the key (RFC 8446, sections 4.6.3 and 5.5) if the application or the peer
/// requests it, or if the key has sent as many records as it may. The caller must have the turn of the gate, unless a member is
/// thread-safe.
/// </summary>
internal sealed class SendKeys
{
    /// <summary>
    /// Maximum number of bytes sent before checking whether the peer has asked for a KeyUpdate, which goes before further data
    /// (RFC 8446, section 4.6.3).
    /// </summary>
    private const int MaxBytesBetweenAnswers = 64 * 1024;

    /// <summary>Number of records sent between two checks for unread control records: 1 MiB of full records.</summary>
    private const int RecordsBetweenChecks = 64;

    private readonly SendGate _gate;
    private readonly OpenSslWriter _writer;
    private readonly Socket _socket;
    private readonly KeyUpdates _updates;
    private RecordBudget _budget;
    private long _nextCheck = RecordsBetweenChecks;

    /// <param name="gate">The gate of the connection.</param>
    /// <param name="writer">Writes the KeyUpdates.</param>
    /// <param name="socket">The socket of the connection.</param>
    /// <param name="updates">The keys that can be changed.</param>
    /// <param name="recordLimit">The number of records that one key may send.</param>
    public SendKeys(SendGate gate, OpenSslWriter writer, Socket socket, KeyUpdates updates, long recordLimit)
    {
        _gate = gate;
        _writer = writer;
        _socket = socket;
        _updates = updates;
        _budget = new RecordBudget(recordLimit);
    }

    /// <summary>Gets or sets the function that reads the peer's control records while the application does not read.</summary>
    public Action? DrainControlRecords { get; set; }

    /// <summary>Gets the number of records sent. The count is an upper bound, as <see cref="RecordBudget"/> explains. Thread-safe.</summary>
    public long RecordsSent => _budget.Sent;

    /// <summary>Gets a value that indicates whether the answer must precede data. If no answer is possible, data is sent under the key that the peer knows.</summary>
    private bool AnswerGoesFirst => _gate.IsAnswerDue && _updates.Sending;

    /// <summary>Sends a KeyUpdate after the write in progress. Later data uses the new key. Thread-safe.</summary>
    /// <param name="requestPeer">Whether to ask the peer to change its key, too.</param>
    /// <param name="cancellationToken">The token that cancels the waits for a turn and for room. The connection stays usable.</param>
    public async ValueTask UpdateAsync(bool requestPeer, CancellationToken cancellationToken)
    {
        await _gate.EnterAsync(cancellationToken).ConfigureAwait(false);
        _gate.IsIntact = true;
        try
        {
            _gate.ThrowIfNotOpen();
            if (!_updates.Sending || (requestPeer && !_updates.Receiving))
            {
                throw TlsErrors.CannotUpdate();
            }

            await _writer.WaitUntilWritableAsync(cancellationToken).ConfigureAwait(false);
            _gate.IsIntact = false;
            bool updated = await TryUpdateAsync(requestPeer, KeyUpdateCause.Application).ConfigureAwait(false);
            _gate.IsIntact = true;
            if (!updated)
            {
                throw TlsErrors.IncompleteMessage();
            }
        }
        finally
        {
            _gate.Exit();
        }
    }

    /// <summary>
    /// Serves the peer at the end of a turn: reads its control records from time to time, and answers if it waits for a KeyUpdate.
    /// Never throws.
    /// </summary>
    public Task EndTurnAsync()
    {
        CheckForKeyUpdateRequests();
        return _gate.IsOpen && _gate.IsAnswerDue ? AnswerAsync() : Task.CompletedTask;
    }

    /// <summary>
    /// Reserves records for all of <paramref name="bytes"/>. Returns <see langword="false"/>, and reserves none, if something must be
    /// waited for or the gate is shut: <see cref="ReserveAsync"/> tells.
    /// </summary>
    public bool TryReserve(long bytes)
    {
        CheckForKeyUpdateRequests();
        return _gate.IsOpen && !AnswerGoesFirst && _budget.Allows(bytes) && _budget.Reserve(bytes) == bytes;
    }

    /// <summary>
    /// Reserves records for as many of <paramref name="bytes"/> as may be sent next, and returns how many that is. An answer to the
    /// peer is sent first. If the key has no records left, it is changed; if it cannot be changed, the sending half is closed.
    /// </summary>
    public ValueTask<int> ReserveAsync(int bytes, CancellationToken cancellationToken)
    {
        int reserved = ReserveNow(bytes);
        return reserved > 0 ? ValueTask.FromResult(reserved) : ReserveLaterAsync(bytes, cancellationToken);
    }

    /// <summary>Reserves records like <see cref="ReserveAsync"/>, but blocks. The socket's SendTimeout limits the wait.</summary>
    public int Reserve(int bytes)
    {
        int reserved = ReserveNow(bytes);
        if (reserved == 0)
        {
            SocketTimeouts.Within(
                _socket.SendTimeout,
                TlsErrors.CannotWrite,
                async limit => reserved = await ReserveLaterAsync(bytes, limit).ConfigureAwait(false));
        }

        return reserved;
    }

    /// <summary>Gives back the records of reserved bytes that were not sent.</summary>
    public void Refund(long reserved, long sent) => _budget.Refund(reserved, sent);

    private int ReserveNow(int bytes)
    {
        CheckForKeyUpdateRequests();
        _gate.ThrowIfAbandoned();
        return AnswerGoesFirst ? 0 : Take(bytes);
    }

    private int Take(int bytes) => (int)_budget.Reserve(Math.Min(bytes, MaxBytesBetweenAnswers));

    private async ValueTask<int> ReserveLaterAsync(int bytes, CancellationToken cancellationToken)
    {
        if (AnswerGoesFirst)
        {
            await _writer.WaitUntilWritableAsync(cancellationToken).ConfigureAwait(false);
            await AnswerAsync().ConfigureAwait(false);
            _gate.ThrowIfNotOpen();
        }

        int reserved = Take(bytes);
        if (reserved == 0)
        {
            await RenewAsync(cancellationToken).ConfigureAwait(false);
            reserved = Take(bytes);
        }

        return reserved;
    }

    /// <summary>Lets the receiver read a KeyUpdate that requests an answer, unless a read is pending.</summary>
    private void CheckForKeyUpdateRequests()
    {
        if (_budget.Sent >= _nextCheck && _gate.IsOpen)
        {
            _nextCheck = _budget.Sent + RecordsBetweenChecks;
            DrainControlRecords?.Invoke();
        }
    }

    /// <summary>Answers the peer. Never throws: an error becomes the failure of the connection.</summary>
    private async Task AnswerAsync()
    {
        _gate.IsAnswerDue = false;
        try
        {
            await _writer.WaitUntilWritableAsync(_gate.Disposed).ConfigureAwait(false);

            // If only half of a handshake message has arrived, the read that takes the rest requests the answer again.
            await TryUpdateAsync(requestPeer: false, KeyUpdateCause.Peer).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            _gate.Abandon(_updates.Sending || e is KtlsRekeyException ? e : TlsErrors.Rekey(e));
        }
    }

    private async Task RenewAsync(CancellationToken cancellationToken)
    {
        if (!_updates.Sending)
        {
            await _writer.WriteAsync(static c => c.Shutdown(), cancellationToken).ConfigureAwait(false);
            _gate.CloseSpent();
            throw TlsErrors.RecordLimit();
        }

        await _writer.WaitUntilWritableAsync(cancellationToken).ConfigureAwait(false);
        if (!await TryUpdateAsync(requestPeer: false, KeyUpdateCause.RecordLimit).ConfigureAwait(false))
        {
            throw TlsErrors.IncompleteMessage();
        }
    }

    /// <summary>Sends a KeyUpdate. Returns <see langword="false"/>, and sends nothing, if only half of a handshake message of the peer has arrived.</summary>
    private async Task<bool> TryUpdateAsync(bool requestPeer, KeyUpdateCause cause)
    {
        bool isIncomplete = false;
        await _writer.WriteAsync(
            c =>
            {
                if (!c.TryUpdateKey(requestPeer, out NativeResult result))
                {
                    throw TlsErrors.Rekey(null);
                }

                isIncomplete = result.Status == NativeStatus.WantRead;
                return isIncomplete ? default : result;
            },
            _gate.Disposed).ConfigureAwait(false);
        if (!isIncomplete)
        {
            _budget.Renew();
            KtlsEventSource.Log.KeyUpdated(cause);
            KtlsMeter.KeyUpdated(cause);
        }

        return !isIncomplete;
    }
}
