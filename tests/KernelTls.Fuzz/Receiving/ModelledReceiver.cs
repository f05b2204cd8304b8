using System.Net;
using System.Net.Sockets;
using KernelTls.IO;

namespace KernelTls.Fuzz.Receiving;

/// <summary>
/// Runs a receiver on a modelled connection with a reader: as many reads of various sizes as the input has choices for.
/// </summary>
internal sealed class ModelledReceiver : IDisposable
{
    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(30);

    /// <summary>The only real sockets, which waits for space use. Nothing is ever sent.</summary>
    private static readonly Socket s_socket = Connect();

    /// <summary>The peer of that socket, which keeps the connection open.</summary>
    private static Socket? s_peer;

    private readonly Choices _choices;
    private readonly World _world;
    private readonly TlsReceiver _receiver;
    private readonly bool _blocks;
    private readonly byte[] _buffer = new byte[20_000];
    private long _read;

    public ModelledReceiver(Choices choices)
    {
        _choices = choices;
        bool kernel = choices.Take(4) != 3;
        _world = new World(choices, kernel, canRekey: choices.Take(2) == 0);
        _blocks = choices.Take(4) == 3;
        ModelConnection connection = new(s_socket.SafeHandle, _world);
        TlsSender sender = new(connection, s_socket, kernel, new KeyUpdates(Sending: true, Receiving: true), long.MaxValue);
        _receiver = new TlsReceiver(
            connection,
            sender,
            new ModelSocket(s_socket, _world),
            kernel,
            pending: kernel && choices.Take(3) == 2,
            _world.CanRekey,
            requiresCloseNotify: false,
            storeSession: null,
            certificateSent: () => { });
        _world.Interrupt = Interrupt;
    }

    /// <summary>Reads until the end and beyond it: it must remain the end.</summary>
    public async Task ReadToTheEndAsync()
    {
        object? end = null;
        while (end is null)
        {
            _world.Yield();
            end = await ReadAsync();
        }

        Verify(end);
        for (int i = 0; i < 3; i++)
        {
            object? again = await ReadAsync(64);
            if (_world.IsClosed ? again is not ObjectDisposedException : !Equals(again, end))
            {
                throw new FuzzException($"The end was {end}, and then {again}.");
            }
        }
    }

    public void Dispose() => _receiver.Dispose();

    /// <summary>Reads once. Returns the end if this is one: true, or the exception.</summary>
    private async Task<object?> ReadAsync(int size = -1)
    {
        size = size < 0 ? _choices.TakeOneOf(64, 0, 1, 100, 2_047, 2_048, 5_000, 20_000) : size;
        using CancellationTokenSource? cancellation = !_blocks && _choices.Take(4) == 3 ? new CancellationTokenSource() : null;
        _world.Cancellation = cancellation;
        _world.WaitedInVain = false;
        _world.Exhausted = null;
        _world.IsReading = true;
        int count;
        try
        {
            count = _blocks
                ? _receiver.Receive(_buffer.AsSpan(0, size))
                : await _receiver.ReceiveAsync(_buffer.AsMemory(0, size), cancellation?.Token ?? default).AsTask().WaitAsync(s_limit);
        }
        catch (TimeoutException e)
        {
            throw new FuzzException($"A read of {size} bytes hangs at {_read}.", e);
        }
        catch (OperationCanceledException) when (cancellation?.IsCancellationRequested == true)
        {
            return null;
        }
        catch (IOException) when (_world is { WaitedInVain: true, End: null })
        {
            // The timeout of a blocking read, which does not end the connection.
            return null;
        }
        catch (Exception e) when (e is not FuzzException)
        {
            return e;
        }
        finally
        {
            _world.IsReading = false;
            _world.ThrowIfBroken();
        }

        if (_world.IsClosed)
        {
            throw new FuzzException($"A read returned {count} bytes although the stream was disposed before.");
        }

        for (int i = 0; i < count; i++, _read++)
        {
            if (_buffer[i] != World.ByteAt(_read))
            {
                throw new FuzzException($"The byte at {_read} is {_buffer[i]}, not {World.ByteAt(_read)}.");
            }
        }

        return count == 0 && size > 0 ? true : null;
    }

    /// <summary>Does what another thread may do at any time.</summary>
    private void Interrupt()
    {
        if (_world.End is not null)
        {
            return;
        }

        switch (_choices.Take(48))
        {
            case 47:
                Close();
                break;
            case 46:
                _receiver.DrainControlRecords();
                break;
            case 45 when _world.Kernel:
                _receiver.TakeRefusedRecord(_world.FailSend());
                break;
        }
    }

    /// <summary>Disposes the stream. The socket is closed later, and may receive until then (<see cref="LingeringClose"/>).</summary>
    private void Close()
    {
        _world.IsClosed = true;
        _receiver.Close();
        _world.Settle(End.Disposed);
        if (_choices.Take(2) == 1)
        {
            _world.Discard();
        }
    }

    private void Verify(object end)
    {
        if (_world.IsClosed)
        {
            // A read that was in progress, and one that began later.
            if (end is not (IOException { InnerException: ObjectDisposedException or SocketException } or ObjectDisposedException))
            {
                throw new FuzzException($"The stream was disposed, and the end is {end}", end as Exception);
            }

            return;
        }

        if (_read != _world.Delivered)
        {
            throw new FuzzException($"Of {_world.Delivered} bytes {_read} were read before the end: {end}");
        }

        bool isRight = _world.End switch
        {
            End.CloseNotify => end is true,
            End.Truncated => end is IOException { InnerException: null } and not KtlsRekeyException,
            End.Lost => end is IOException { InnerException: SocketException inner } && inner.SocketErrorCode == _world.Lost,
            End.Tls => end is IOException { InnerException: not SocketException } and not KtlsRekeyException,
            End.Rekey => end is KtlsRekeyException { Failure: KtlsRekeyFailure.NotSupported },
            End.Flood => end is KtlsRekeyException { Failure: KtlsRekeyFailure.Flood },
            _ => false,
        };
        if (!isRight)
        {
            throw new FuzzException($"The end should be {_world.End} ({_world.Lost}), and is {end}", end as Exception);
        }
    }

    private static Socket Connect()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Connect(listener.LocalEndPoint!);
        s_peer = listener.Accept();
        return socket;
    }
}
