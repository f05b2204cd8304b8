using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Connects through a relay that passes one direction up to the sender's ChangeCipherSpec, which precedes its Finished,
/// and holds everything from there, to be sent in pieces of any size.
/// </summary>
internal sealed class HoldingRelay : IDisposable
{
    private const int HeaderSize = 5;
    private const int ChangeCipherSpec = 20;

    private readonly SocketPair _near;
    private readonly SocketPair _far;
    private readonly Socket _to;
    private readonly List<byte> _held = [];
    private bool _holds;

    private HoldingRelay(SocketPair near, SocketPair far, bool holdsClient)
    {
        (_near, _far) = (near, far);
        Ends = new SocketPair(near.Client, far.Server);
        (Socket client, Socket server) = (near.Server, far.Client);
        _to = holdsClient ? server : client;
        _ = PassAsync(client, server, holdsClient);
        _ = PassAsync(server, client, !holdsClient);
    }

    /// <summary>Gets the sockets of the client and the server.</summary>
    public SocketPair Ends { get; }

    /// <summary>Gets the number of bytes held.</summary>
    public int Held
    {
        get
        {
            lock (_held)
            {
                return _held.Count;
            }
        }
    }

    /// <summary>Gets the number of complete records held.</summary>
    public int HeldRecords
    {
        get
        {
            lock (_held)
            {
                int records = 0;
                for (List<byte> rest = _held; rest.Count >= HeaderSize && rest.Count >= LengthOf(rest); records++)
                {
                    rest = rest[LengthOf(rest)..];
                }

                return records;
            }
        }
    }

    public static async Task<HoldingRelay> ConnectAsync(bool holdsClient) =>
        new(await SocketPair.ConnectAsync(), await SocketPair.ConnectAsync(), holdsClient);

    /// <summary>Sends this many of the bytes held, in one segment.</summary>
    public async Task SendAsync(int count)
    {
        byte[] piece;
        lock (_held)
        {
            piece = [.. _held.Take(count)];
            _held.RemoveRange(0, piece.Length);
        }

        await SendAllAsync(_to, piece);
    }

    /// <summary>Sends bytes that did not come from either end.</summary>
    public Task InjectAsync(ReadOnlyMemory<byte> bytes) => SendAllAsync(_to, bytes);

    public void Dispose()
    {
        _near.Dispose();
        _far.Dispose();
    }

    /// <summary>Relays until either socket ends.</summary>
    private async Task PassAsync(Socket from, Socket to, bool holds)
    {
        byte[] buffer = new byte[16 * 1024];
        List<byte> record = [];
        try
        {
            for (int read; (read = await from.ReceiveAsync(buffer)) > 0;)
            {
                if (!holds)
                {
                    await SendAllAsync(to, buffer.AsMemory(0, read));
                    continue;
                }

                // Record by record, until the one from which everything is held.
                record.AddRange(buffer.AsSpan(0, read));
                while (!_holds && record.Count >= HeaderSize && record.Count >= LengthOf(record))
                {
                    _holds = record[0] == ChangeCipherSpec;
                    if (!_holds)
                    {
                        await SendAllAsync(to, record.Take(LengthOf(record)).ToArray());
                        record.RemoveRange(0, LengthOf(record));
                    }
                }

                if (_holds)
                {
                    lock (_held)
                    {
                        _held.AddRange(record);
                    }

                    record.Clear();
                }
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            to.Dispose();
        }
    }

    private static int LengthOf(List<byte> record) => HeaderSize + ((record[3] << 8) | record[4]);

    private static async Task SendAllAsync(Socket to, ReadOnlyMemory<byte> bytes)
    {
        while (!bytes.IsEmpty)
        {
            bytes = bytes[await to.SendAsync(bytes)..];
        }
    }
}
