using System.Net.Sockets;
using System.Reflection;
using System.Runtime.CompilerServices;
using KernelTls.IO;

namespace KernelTls.Fuzz.Receiving;

/// <summary>
/// A model of a socket whose receives return the results chosen by the input: data, nothing, errors of records and of
/// the connection.
/// </summary>
internal sealed class ModelSocket(Socket socket, World world) : SocketReceiver(socket)
{
    /// <summary>The kernel's errors for a record, after which OpenSSL must read.</summary>
    private static readonly SocketError[] s_recordErrors = [SocketError.SocketError, SocketError.MessageSize, SocketError.InvalidArgument];

    private static readonly SocketError[] s_losses =
        [SocketError.ConnectionReset, SocketError.Shutdown, SocketError.TimedOut, SocketError.HostUnreachable, SocketError.NotConnected];

    /// <summary>The completion of SocketAsyncEventArgs, which the receiver overrides.</summary>
    private static readonly Action<SocketAsyncEventArgs, SocketAsyncEventArgs> s_complete =
        typeof(SocketAsyncEventArgs).GetMethod("OnCompleted", BindingFlags.Instance | BindingFlags.NonPublic)!
            .CreateDelegate<Action<SocketAsyncEventArgs, SocketAsyncEventArgs>>();

    private enum What
    {
        Fin,
        Data,
        Nothing,
        RecordError,
        Loss,
    }

    public override SocketReceiveResult? TryReceive(Span<byte> buffer)
    {
        world.Enter(nameof(TryReceive));
        if (!world.Kernel)
        {
            throw new FuzzException("A receive that does not wait, though the kernel does not decrypt.");
        }

        if (world.IsRefused)
        {
            return ReceiveBeforeRefused(buffer);
        }

        What what = world.Choices.TakeOneOf(What.Fin, What.Data, What.Data, What.Nothing, What.RecordError, What.Loss);
        if (what == What.Nothing)
        {
            if (world.Lost is not null)
            {
                world.Settle(End.Lost);
            }

            world.Exhausted = nameof(TryReceive);
            return null;
        }

        return Come(what, buffer);
    }

    public override bool Start(SocketAsyncEventArgs arguments, CancellationToken cancellationToken)
    {
        world.Enter(nameof(Start));
        bool atOnce = world.Choices.Take(3) == 0;
        if (atOnce)
        {
            Finish(arguments, mayCancel: false);
            return false;
        }

        ThreadPool.QueueUserWorkItem(_ => FinishLater(arguments));
        return true;
    }

    /// <summary>Returns the result. There is no connection to mark as connected.</summary>
    public override SocketReceiveResult Complete(int bytes, SocketError error) => new(bytes, error);

    public override void ClearError() => world.ReportsRefused = false;

    public override bool WaitReadable()
    {
        world.Enter(nameof(WaitReadable));
        world.WaitedInVain = world.IsRefused ? world.BeforeRefused == 0 : world.Choices.Take(6) == 5;
        return !world.WaitedInVain;
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_bytesTransferred")]
    private static extern ref int BytesOf(SocketAsyncEventArgs arguments);

    private void FinishLater(SocketAsyncEventArgs arguments)
    {
        try
        {
            Finish(arguments, mayCancel: true);
        }
        catch (FuzzException e)
        {
            world.Broken = e;
        }

        s_complete(arguments, arguments);
    }

    private void Finish(SocketAsyncEventArgs arguments, bool mayCancel)
    {
        world.Yield();
        if (world.IsClosed && world.Choices.Take(2) == 1)
        {
            BytesOf(arguments) = 0;
            arguments.SocketError = SocketError.OperationAborted;
            return;
        }

        if (mayCancel && world.Cancellation is { } cancellation && world.Choices.Take(2) == 1)
        {
            cancellation.Cancel();
            BytesOf(arguments) = 0;
            arguments.SocketError = SocketError.OperationAborted;
            return;
        }

        bool waitsOnly = arguments.MemoryBuffer.IsEmpty;
        if (world.IsRefused && world.Kernel)
        {
            SocketReceiveResult last = ReceiveBeforeRefused(arguments.MemoryBuffer.Span)
                ?? throw new FuzzException("A receive waits, though the kernel has refused a record.");
            BytesOf(arguments) = last.Bytes;
            arguments.SocketError = last.Error;
            return;
        }

        What what = world.Choices.TakeOneOf(What.Fin, What.Data, What.Data, What.RecordError, What.Loss);
        if (waitsOnly && what is What.Fin or What.Data)
        {
            // Readable: the next receive returns the result.
            BytesOf(arguments) = 0;
            arguments.SocketError = SocketError.Success;
            return;
        }

        // Without the kernel no error is about a record.
        what = !world.Kernel && what == What.RecordError ? What.Loss : what;
        SocketReceiveResult result = Come(what, arguments.MemoryBuffer.Span);
        BytesOf(arguments) = result.Bytes;
        arguments.SocketError = result.Error;
    }

    /// <summary>Receives what precedes a refused record, then the error that the kernel has stored for it, then nothing.</summary>
    private SocketReceiveResult? ReceiveBeforeRefused(Span<byte> buffer)
    {
        if (world.BeforeRefused > 0)
        {
            return Come(What.Data, buffer);
        }

        if (world.ReportsRefused)
        {
            world.ReportsRefused = false;
            return new SocketReceiveResult(0, SocketError.SocketError);
        }

        world.Exhausted = nameof(TryReceive);
        return null;
    }

    private SocketReceiveResult Come(What what, Span<byte> buffer)
    {
        SocketReceiveResult result = Receive(what, buffer);
        world.Yield();
        return result;
    }

    private SocketReceiveResult Receive(What what, Span<byte> buffer)
    {
        switch (what)
        {
            case What.Data:
                return new SocketReceiveResult(world.Deliver(buffer), SocketError.Success);
            case What.RecordError:
                SocketError recordError = world.Choices.TakeOneOf<SocketError>(s_recordErrors);
                world.IsRefused |= recordError != SocketError.SocketError;
                return new SocketReceiveResult(0, recordError);
            case What.Loss:
                SocketError error = world.Choices.TakeOneOf<SocketError>(s_losses);
                world.Lose(error);
                return new SocketReceiveResult(0, error);
            default:
                // A FIN that arrived before the connection was lost is OpenSSL's to judge.
                if (world.Lost is not null and not SocketError.Shutdown)
                {
                    world.Settle(End.Lost);
                }

                return new SocketReceiveResult(0, SocketError.Success);
        }
    }
}
