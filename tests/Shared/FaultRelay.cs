using System.Buffers.Binary;
using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>
/// A connection through a relay that passes whole TLS records (RFC 8446, section 5.1). Once a fault is armed, it replaces one
/// record of application data in one direction; everything before and behind it passes as it is.
/// </summary>
internal sealed class FaultRelay : IDisposable
{
    private const int HeaderSize = 5;
    private const int ApplicationData = 23;

    private readonly SocketPair _near;
    private readonly SocketPair _far;
    private readonly Socket _receiver;
    private readonly TaskCompletionSource _sent = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Lock _lock = new();
    private Func<byte[], byte[]>? _fault;
    private int _before;
    private bool _together;

    private FaultRelay(SocketPair near, SocketPair far, bool toClient)
    {
        (_near, _far) = (near, far);
        Ends = new SocketPair(near.Client, far.Server);
        (Socket client, Socket server) = (near.Server, far.Client);
        _receiver = toClient ? client : server;
        _ = PassAsync(client, server, !toClient);
        _ = PassAsync(server, client, toClient);
    }

    /// <summary>The client's and the server's socket.</summary>
    public SocketPair Ends { get; }

    /// <summary>Completes when the fault has been sent to its receiver.</summary>
    public Task Sent => _sent.Task;

    /// <param name="toClient">Whether the client, not the server, is to receive the fault.</param>
    public static async Task<FaultRelay> ConnectAsync(bool toClient) =>
        new(await SocketPair.ConnectAsync(), await SocketPair.ConnectAsync(), toClient);

    /// <summary>Between a client and a server that listens: accepts one connection, whose relay is the result.</summary>
    public static async Task<FaultRelay> AcceptAsync(Socket listener, System.Net.EndPoint server, bool toClient)
    {
        Socket near = await listener.AcceptAsync();
        Socket far = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await far.ConnectAsync(server);
        near.NoDelay = true;
        return new FaultRelay(new SocketPair(near, near), new SocketPair(far, far), toClient);
    }

    /// <summary>Replaces one of the records of application data that come from now on.</summary>
    /// <param name="fault">Gives the bytes to send in place of the record, which begins with its header.</param>
    /// <param name="before">How many records of application data pass first.</param>
    /// <param name="together">Sends these and the fault in one piece, so that they arrive at once.</param>
    public void Arm(Func<byte[], byte[]> fault, int before = 0, bool together = false)
    {
        lock (_lock)
        {
            (_fault, _before, _together) = (fault, before, together);
        }
    }

    /// <summary>Resets the receiver's connection.</summary>
    public void Reset()
    {
        _receiver.LingerState = new LingerOption(true, 0);
        _receiver.Dispose();
    }

    public void Dispose()
    {
        _near.Dispose();
        _far.Dispose();
    }

    /// <summary>Ends with either socket; the sender's end is passed on.</summary>
    private async Task PassAsync(Socket from, Socket to, bool faulty)
    {
        byte[] buffer = new byte[64 * 1024];
        List<byte> input = [];
        List<byte> output = [];
        try
        {
            for (int read; (read = await from.ReceiveAsync(buffer)) > 0;)
            {
                input.AddRange(buffer.AsSpan(0, read));
                bool sent = false;
                while (input.Count >= HeaderSize && LengthOf(input) is var length && input.Count >= length)
                {
                    byte[] record = [.. input[..length]];
                    input.RemoveRange(0, length);
                    output.AddRange(faulty ? Change(record, out bool changed) : Same(record, out changed));
                    sent |= changed;
                }

                lock (_lock)
                {
                    if (faulty && _together && _fault is not null)
                    {
                        continue;
                    }
                }

                await SendAllAsync(to, output.ToArray());
                output.Clear();
                if (sent)
                {
                    _sent.TrySetResult();
                }
            }

            to.Shutdown(SocketShutdown.Send);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            to.Dispose();
        }
    }

    private byte[] Change(byte[] record, out bool changed)
    {
        lock (_lock)
        {
            changed = false;
            if (_fault is not { } fault || record[0] != ApplicationData || _before-- > 0)
            {
                return record;
            }

            _fault = null;
            changed = true;
            return fault(record);
        }
    }

    private static byte[] Same(byte[] record, out bool changed)
    {
        changed = false;
        return record;
    }

    private static int LengthOf(List<byte> record) => HeaderSize + BinaryPrimitives.ReadUInt16BigEndian([record[3], record[4]]);

    private static async Task SendAllAsync(Socket to, ReadOnlyMemory<byte> bytes)
    {
        while (!bytes.IsEmpty)
        {
            bytes = bytes[await to.SendAsync(bytes)..];
        }
    }
}
