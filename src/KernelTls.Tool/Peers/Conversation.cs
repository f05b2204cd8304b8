using System.Text;

namespace KernelTls.Tool.Peers;

/// <summary>What a probe says to the peer, and how long it listens.</summary>
/// <param name="Request">Sent after the handshake; <see langword="null"/>: nothing.</param>
/// <param name="Wait">How long it listens without hearing anything.</param>
internal sealed record Conversation(byte[]? Request, TimeSpan Wait)
{
    private const int EnoughBytes = 1 << 20;
    private const int BufferSize = 64 * 1024;

    /// <summary>Asks for a page by HTTP/1.1, which most peers understand; others answer something, or nothing.</summary>
    public static byte[] HttpRequest(string host, string path) =>
        Encoding.ASCII.GetBytes($"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ktls-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n");

    /// <summary>Sends the request and reads until the peer ends, is quiet, or has said enough (1 MiB).</summary>
    /// <param name="stream">The connection, of no use afterwards.</param>
    /// <param name="onRead">Hears how much each read brought.</param>
    /// <param name="cancellationToken">Ends the command.</param>
    public async Task<Ending> HoldAsync(Stream stream, Action<int> onRead, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(Wait);
        byte[] buffer = new byte[BufferSize];
        try
        {
            if (Request is not null)
            {
                await stream.WriteAsync(Request, limit.Token);
            }

            for (long total = 0; total < EnoughBytes;)
            {
                limit.CancelAfter(Wait);
                int count = await stream.ReadAsync(buffer, limit.Token);
                if (count == 0)
                {
                    return new Ending(EndingKind.Closed, "");
                }

                onRead(count);
                total += count;
            }

            return new Ending(EndingKind.Enough, "");
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            return new Ending(EndingKind.Quiet, "");
        }
        catch (IOException e)
        {
            cancellationToken.ThrowIfCancellationRequested();
            return new Ending(EndingKind.Broken, PeerSettings.Describe(e));
        }
    }

    /// <param name="Kind">What it was.</param>
    /// <param name="Detail">What broke; else empty.</param>
    internal sealed record Ending(EndingKind Kind, string Detail);

    internal enum EndingKind
    {
        /// <summary>The peer closed.</summary>
        Closed,

        /// <summary>The peer had nothing more to say in the time that it was given.</summary>
        Quiet,

        /// <summary>1 MiB has come.</summary>
        Enough,

        /// <summary>The connection failed.</summary>
        Broken,
    }
}
