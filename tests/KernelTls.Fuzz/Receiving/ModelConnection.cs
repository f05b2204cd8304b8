using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Fuzz.Receiving;

/// <summary>
/// A model of OpenSSL whose reads return the results chosen by the input: data, messages, waits, the end and failures.
/// </summary>
internal sealed class ModelConnection(SafeSocketHandle socket, World world) : TlsConnection(new SafeTlsConnectionHandle(0), socket)
{
    private const int NoSuitableRecordLayer = 322;
    private const int MostMessages = 128;

    /// <summary>
    /// The number of additional messages that are tolerated if an input takes seconds: the limit is approximate here.
    /// </summary>
    private const int Uncertain = 30;
    private const int ConnectionReset = 104;
    private const int NoMemory = 12;
    private const int InputOutput = 5;

    private bool _wantsCertificate;

    /// <summary>The errno that the next receive of OpenSSL fails with, or 0.</summary>
    private int _receiveError;

    public override NativeResult Read(Span<byte> buffer)
    {
        if (_wantsCertificate && buffer.IsEmpty)
        {
            // The answer to the peer's certificate request.
            _wantsCertificate = false;
            return new NativeResult { Status = NativeStatus.WantRead };
        }

        if (world is { IsInterrupted: true, IsReading: true } && _receiveError is not (0 or InputOutput))
        {
            // OpenSSL sends the alert and receives nothing.
            return new NativeResult { Status = NativeStatus.TlsError, Reason = 1 };
        }

        world.Enter(nameof(Read));
        if (world.Held > 0)
        {
            return Deliver(buffer, default);
        }

        int error = _receiveError;
        _receiveError = 0;
        if (world.IsRefused && world.Kernel)
        {
            return ReadBeforeRefused(buffer, error);
        }

        NativeStatus status = world.Choices.TakeOneOf(
            NativeStatus.CloseNotify, NativeStatus.Eof, NativeStatus.Ok, NativeStatus.Ok, NativeStatus.WantRead, NativeStatus.WantRead, NativeStatus.WantWrite,
            NativeStatus.WantCertificate, NativeStatus.UnexpectedEof, NativeStatus.Syscall, NativeStatus.TlsError);
        NativeResult result = new() { Status = status };
        CountMessages(ref result);
        if (world.Messages > MostMessages)
        {
            world.Settle(End.Flood);
            return result;
        }

        switch (status)
        {
            case NativeStatus.Ok:
                world.Hold();
                result = Deliver(buffer, result);
                break;
            case NativeStatus.WantRead:
                PendingOf(ref result) = world.Choices.Take(2);
                world.Exhausted = result.Pending && result.Messages > 0 ? null : nameof(Read);
                break;
            case NativeStatus.WantCertificate:
                _wantsCertificate = true;
                break;
            case NativeStatus.CloseNotify or NativeStatus.Eof:
                world.Settle(End.CloseNotify);
                break;
            case NativeStatus.UnexpectedEof:
                world.Settle(world.Lost is null ? End.Truncated : End.Lost);
                break;
            case NativeStatus.Syscall:
                result.SysErrno = world.Choices.Take(2) == 0 ? ConnectionReset : NoMemory;
                world.Lose(result.SysErrno == ConnectionReset ? SocketError.ConnectionReset : SocketError.SocketError);
                break;
            case NativeStatus.TlsError:
                result.Reason = world.Choices.TakeOneOf(1, NoSuitableRecordLayer, 1000 + 20);
                world.Settle(result.Reason == NoSuitableRecordLayer && !world.CanRekey ? End.Rekey : End.Tls);
                break;
        }

        return result;
    }

    public override void ReceiveFailed(int errno)
    {
        world.Enter(nameof(ReceiveFailed));
        if (errno is not (5 or 22 or 74 or 90))
        {
            throw new FuzzException($"OpenSSL was told of errno {errno}, which is not about a record.");
        }

        _receiveError = _receiveError is 0 or InputOutput ? errno : _receiveError;
    }

    public override bool TryUpdateKey(bool requestPeer, out NativeResult result)
    {
        result = default;
        return true;
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_pending")]
    private static extern ref int PendingOf(ref NativeResult result);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_keyUpdate")]
    private static extern ref int KeyUpdateOf(ref NativeResult result);

    /// <summary>Reads what precedes a record that the kernel has refused, or fails.</summary>
    private NativeResult ReadBeforeRefused(Span<byte> buffer, int error)
    {
        if (error is not (0 or InputOutput) && world is { BeforeRefused: > 0, IsClosed: false })
        {
            throw world.Broken = new FuzzException($"OpenSSL fails although {world.BeforeRefused} bytes precede the refused record.");
        }

        if (world.BeforeRefused > 0)
        {
            world.Hold();
            return Deliver(buffer, default);
        }

        if (error == 0 && !world.ReportsRefused)
        {
            world.Exhausted = nameof(Read);
            return new NativeResult { Status = NativeStatus.WantRead };
        }

        world.ReportsRefused = false;
        world.Settle(End.Tls);
        return new NativeResult { Status = NativeStatus.TlsError, Reason = 1 };
    }

    /// <summary>Delivers data that OpenSSL holds. It may hold further records.</summary>
    private NativeResult Deliver(Span<byte> buffer, NativeResult result)
    {
        result.Status = NativeStatus.Ok;
        result.Bytes = world.DeliverHeld(buffer);
        PendingOf(ref result) = world.Held > 0 ? 1 : world.Choices.Take(2);
        return result;
    }

    /// <summary>
    /// Counts messages. A call of OpenSSL may process a message, and sometimes many, as sent by a peer that wants to
    /// keep this end busy.
    /// </summary>
    private void CountMessages(ref NativeResult result)
    {
        int messages = world.Choices.TakeOneOf(0, 0, 0, 1, 1, 64);
        int all = world.Messages + messages;
        result.Messages = all is > MostMessages and <= MostMessages + Uncertain ? 0 : messages;
        world.Messages += result.Messages;
        KeyUpdateOf(ref result) = result.Messages == 1 ? world.Choices.Take(2) : 0;
    }
}
