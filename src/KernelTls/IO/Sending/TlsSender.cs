using System.Buffers;
using System.Net.Sockets;
using System.Runtime.CompilerServices;

namespace KernelTls.IO;

/// <summary>
/// The sending half of a connection. A write takes a turn at the <see cref="SendGate"/>, reserves records of the key
/// (<see cref="SendKeys"/>) and goes to the kernel (<see cref="KernelWriter"/>) or to OpenSSL
/// (<see cref="OpenSslWriter"/>).
/// </summary>
internal sealed class TlsSender
{
    private readonly TlsConnection _connection;
    private readonly Socket _socket;
    private readonly bool _kernel;
    private readonly SendGate _gate;
    private readonly SendKeys _keys;
    private readonly KernelWriter _kernelWriter;
    private readonly OpenSslWriter _openSsl;
    private readonly SendFailures _failures;
    private int _writing;

    /// <param name="connection">The connection.</param>
    /// <param name="socket">The connection's socket.</param>
    /// <param name="kernel">Whether the kernel encrypts.</param>
    /// <param name="keyUpdates">The keys that can be changed.</param>
    /// <param name="recordLimit">The number of records that one key may send.</param>
    public TlsSender(TlsConnection connection, Socket socket, bool kernel, KeyUpdates keyUpdates, long recordLimit)
    {
        _connection = connection;
        _socket = socket;
        _kernel = kernel;
        _gate = new SendGate(() => _keys!.EndTurnAsync());
        _openSsl = new OpenSslWriter(connection, socket, _gate);
        _kernelWriter = new KernelWriter(socket);
        _keys = new SendKeys(_gate, _openSsl, socket, keyUpdates, recordLimit);
        _failures = new SendFailures(kernel, _gate);
    }

    /// <summary>Gets the gate at which all senders take turns.</summary>
    public SendGate Gate => _gate;

    /// <inheritdoc cref="SendKeys.RecordsSent"/>
    public long RecordsSent => _keys.RecordsSent;

    /// <inheritdoc cref="SendKeys.DrainControlRecords"/>
    public Action? DrainControlRecords
    {
        get => _keys.DrainControlRecords;
        set => _keys.DrainControlRecords = value;
    }

    /// <inheritdoc cref="SendFailures.TakeRefusedRecord"/>
    public Action<int>? TakeRefusedRecord
    {
        get => _failures.TakeRefusedRecord;
        set => _failures.TakeRefusedRecord = value;
    }

    /// <summary>
    /// Sends all of <paramref name="data"/>. Sends nothing for empty data, because TLS has no use for empty records.
    /// </summary>
    public ValueTask SendAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        BeginWrite();
        if (!TryBeginTurn(data.Length, out bool hasTurn, cancellationToken))
        {
            return SendLaterAsync(new ReadOnlySequence<byte>(data), file: null, hasTurn, cancellationToken);
        }

        int sent;
        try
        {
            sent = data.IsEmpty ? 0 : _kernelWriter.WriteNow(data.Span);
        }
        catch (Exception e)
        {
            return EndTurn(e);
        }

        if (sent == data.Length)
        {
            return EndTurn(failure: null);
        }

        _keys.Refund(data.Length, sent);
        return SendLaterAsync(new ReadOnlySequence<byte>(data[sent..]), file: null, hasTurn, cancellationToken);
    }

    /// <summary>
    /// Sends all of <paramref name="data"/>, with kernel TLS in one system call, so that small segments share full
    /// records.
    /// </summary>
    public ValueTask SendAsync(in ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        if (data.IsSingleSegment)
        {
            return SendAsync(data.First, cancellationToken);
        }

        BeginWrite();
        if (!TryBeginTurn(data.Length, out bool hasTurn, cancellationToken))
        {
            return SendLaterAsync(data, file: null, hasTurn, cancellationToken);
        }

        ReadOnlySequence<byte> rest;
        try
        {
            rest = WriteNow(data);
        }
        catch (Exception e)
        {
            return EndTurn(e);
        }

        return rest.IsEmpty ? EndTurn(failure: null) : SendLaterAsync(rest, file: null, hasTurn, cancellationToken);
    }

    /// <summary>
    /// Sends all of <paramref name="data"/>; blocks until then. The socket's SendTimeout limits each wait.
    /// </summary>
    public void Send(ReadOnlySpan<byte> data)
    {
        BeginWrite();
        try
        {
            if (!_gate.Enter(SocketTimeouts.ToTimeSpan(_socket.SendTimeout)))
            {
                throw TlsErrors.Socket(TlsErrors.CannotWrite, SocketError.TimedOut);
            }

            try
            {
                _gate.ThrowIfNotOpen();
                while (!data.IsEmpty)
                {
                    ReadOnlySpan<byte> part = data[.._keys.Reserve(data.Length)];
                    if (_kernel)
                    {
                        _kernelWriter.Write(part);
                    }
                    else
                    {
                        _openSsl.Write(part);
                    }

                    data = data[part.Length..];
                }

                _gate.IsIntact = true;
            }
            finally
            {
                _gate.Exit();
            }
        }
        catch (Exception e) when (_failures.Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            EndWrite();
        }
    }

    /// <summary>
    /// Sends all of <paramref name="section"/>. If that fails after a part may have been sent, the sending half is
    /// broken.
    /// </summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    public async ValueTask SendFileAsync(FileSection section, CancellationToken cancellationToken)
    {
        BeginWrite();
        await SendLaterAsync(default, section, hasTurn: false, cancellationToken).ConfigureAwait(false);
    }

    /// <inheritdoc cref="SendKeys.UpdateAsync"/>
    public async ValueTask UpdateSendKeyAsync(bool requestPeer, CancellationToken cancellationToken)
    {
        try
        {
            await _keys.UpdateAsync(requestPeer, cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e) when (_failures.Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
    }

    /// <inheritdoc cref="OpenSslWriter.SelectCertificate"/>
    public Action? SelectCertificate
    {
        set => _openSsl.SelectCertificate = value;
    }

    /// <summary>
    /// Sends the answer to the peer's CertificateRequest (RFC 8446, section 4.6.2), after the send in progress.
    /// </summary>
    public async Task AnswerCertificateRequestAsync(CancellationToken cancellationToken)
    {
        await _gate.EnterAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            await _openSsl.AnswerCertificateRequestAsync(cancellationToken).ConfigureAwait(false);
            _gate.IsIntact = true;
        }
        finally
        {
            _gate.Exit();
        }
    }

    /// <summary>Runs <paramref name="work"/> and prevents other sends while it runs.</summary>
    /// <exception cref="NotSupportedException">A write is pending.</exception>
    public async Task RunExclusiveAsync(Func<Task> work, CancellationToken cancellationToken)
    {
        BeginWrite();
        try
        {
            await _gate.EnterAsync(cancellationToken).ConfigureAwait(false);
            try
            {
                _gate.ThrowIfNotOpen();
                await work().ConfigureAwait(false);
                _gate.IsIntact = true;
            }
            catch (Exception e) when (e is InvalidOperationException or NotSupportedException)
            {
                // The request was refused and has not changed the connection.
                _gate.IsIntact = true;
                throw;
            }
            finally
            {
                _gate.Exit();
            }
        }
        finally
        {
            EndWrite();
        }
    }

    /// <inheritdoc cref="CloseSender.ShutdownAsync"/>
    public Task ShutdownAsync() => CreateCloseSender().ShutdownAsync();

    /// <inheritdoc cref="CloseSender.Close"/>
    public bool Close(bool closesSocket) => CreateCloseSender().Close(closesSocket);

    /// <inheritdoc cref="CloseSender.CloseAsync"/>
    public ValueTask<bool> CloseAsync(bool closesSocket) => CreateCloseSender().CloseAsync(closesSocket);

    /// <summary>Creates a sender of files. Most connections need none, so they keep none.</summary>
    private FileSender CreateFileSender() => new(_connection, _socket, _kernel, _openSsl, _keys, SendInTurnAsync);

    /// <summary>Creates a sender of close_notify, which a connection needs at its end only.</summary>
    private CloseSender CreateCloseSender() => new(_connection, _gate, _openSsl);

    private void BeginWrite()
    {
        if (Interlocked.Exchange(ref _writing, 1) != 0)
        {
            throw TlsErrors.WritePending();
        }
    }

    private void EndWrite() => Volatile.Write(ref _writing, 0);

    /// <summary>
    /// Takes a turn and reserves records for all of a write, if the kernel encrypts and neither must be waited for.
    /// </summary>
    private bool TryBeginTurn(long bytes, out bool hasTurn, CancellationToken cancellationToken)
    {
        hasTurn = _kernel && !cancellationToken.IsCancellationRequested && _gate.TryEnter();
        return hasTurn && _keys.TryReserve(bytes);
    }

    /// <summary>Ends the turn of a write that did not have to wait.</summary>
    private ValueTask EndTurn(Exception? failure)
    {
        _gate.IsIntact = failure is null;
        _gate.Exit();
        EndWrite();
        return failure is null ? default : ValueTask.FromException(_failures.Translate(failure));
    }

    /// <summary>
    /// Sends a file, or data that could not be sent at once: there was no room, the turn or a new key must be waited
    /// for, or the gate is shut.
    /// </summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask SendLaterAsync(
        ReadOnlySequence<byte> data, FileSection? file, bool hasTurn, CancellationToken cancellationToken)
    {
        try
        {
            if (!hasTurn)
            {
                await _gate.EnterAsync(cancellationToken).ConfigureAwait(false);
            }

            bool isSent = false;
            try
            {
                _gate.ThrowIfNotOpen();
                if (file is null)
                {
                    await SendInTurnAsync(data, cancellationToken).ConfigureAwait(false);
                }
                else
                {
                    await CreateFileSender().SendAsync(file, cancellationToken).ConfigureAwait(false);
                }

                isSent = true;
            }
            finally
            {
                _gate.IsIntact = isSent || file is { HasStarted: false };
                _gate.Exit();
            }
        }
        catch (Exception e) when (_failures.Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            EndWrite();
        }
    }

    private ValueTask SendInTurnAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken) =>
        _kernel ? SendSegmentsAsync(data, cancellationToken) : _openSsl.WriteAsync(data, _keys, cancellationToken);

    /// <summary>
    /// Sends a segment, or 64 KiB of it, by Socket.SendAsync, which waits for room. The segments after it share records
    /// again, unless a KeyUpdate must be sent first.
    /// </summary>
    private async ValueTask SendSegmentsAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        while (!data.IsEmpty)
        {
            SequencePosition position = data.Start;
            ReadOnlyMemory<byte> first;
            while (data.TryGet(ref position, out first) && first.IsEmpty)
            {
            }

            first = first[..await _keys.ReserveAsync(first.Length, cancellationToken).ConfigureAwait(false)];
            await _kernelWriter.WriteAsync(first, cancellationToken).ConfigureAwait(false);
            data = data.Slice(first.Length);
            if (_keys.TryReserve(data.Length))
            {
                data = WriteNow(data);
            }
        }
    }

    /// <summary>
    /// Writes as much as the socket has room for, without waiting, and returns the rest. Records for all of it must be
    /// reserved.
    /// </summary>
    private ReadOnlySequence<byte> WriteNow(ReadOnlySequence<byte> data)
    {
        while (!data.IsEmpty)
        {
            long sent = _kernelWriter.WriteNow(data, out long offered);
            _keys.Refund(data.Length, sent);
            data = data.Slice(sent);
            if (sent < offered || !_keys.TryReserve(data.Length))
            {
                break;
            }
        }

        return data;
    }
}
