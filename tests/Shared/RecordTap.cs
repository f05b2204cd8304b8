namespace KernelTls.Tests;

/// <summary>
/// Connects through a relay that records the length of each TLS record from the client to the server.
/// </summary>
internal sealed class RecordTap : IDisposable
{
    private readonly SocketPair _near;
    private readonly SocketPair _far;
    private readonly RecordLengths _records = new();

    private RecordTap(SocketPair near, SocketPair far)
    {
        (_near, _far) = (near, far);
        Ends = new SocketPair(near.Client, far.Server);
    }

    /// <summary>Gets the sockets of the client and the server.</summary>
    public SocketPair Ends { get; }

    /// <summary>Gets the lengths of the records begun so far, without their headers (RFC 8446, section 5.1).</summary>
    public int[] Records => _records.Begun;

    public static async Task<RecordTap> ConnectAsync()
    {
        RecordTap tap = new(await SocketPair.ConnectAsync(), await SocketPair.ConnectAsync());
        _ = Relay.PassAsync(tap._near.Server, tap._far.Client, bytes => tap._records.Note(bytes));
        _ = Relay.PassAsync(tap._far.Client, tap._near.Server, static _ => { });
        return tap;
    }

    public void Dispose()
    {
        _near.Dispose();
        _far.Dispose();
    }
}
