using System.Text;

namespace KernelTls.Tool.Peers;

/// <summary>Defines what a probe sends to the peer, and how long it reads.</summary>
/// <param name="Request">The data to send after the handshake, or <see langword="null"/> for none.</param>
/// <param name="Wait">The maximum time without data from the peer.</param>
internal sealed record Conversation(byte[]? Request, TimeSpan Wait)
{
    private const int EnoughBytes = 1 << 20;
    private const int BufferSize = 64 * 1024;

    /// <summary>
    /// Returns an HTTP/1.1 request, which most peers understand. Others may reply with anything or nothing.
    /// </summary>
    public static byte[] HttpRequest(string host, string path) =>
        Encoding.ASCII.GetBytes($"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ktls-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n");

    /// <summary>
    /// Sends the request and reads until the peer closes, sends nothing for a while, or has sent 1 MiB.
    /// </summary>
    /// <param name="stream">The connection, which cannot be used afterwards.</param>
    /// <param name="onRead">The callback that receives the size of each read.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    public async Task<Ending> HoldAsync(Stream stream, Action<int> onRead, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(Wait);
        byte[] buffer = new byte[BufferSize];
        try
        {
            if (Request is not null)
            {
                await SendAsync(stream, Request, buffer, limit.Token);
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

    /// <summary>Sends data. If that fails because the peer has sent an alert before and closed, the alert is the failure.</summary>
    private static async Task SendAsync(Stream stream, byte[] data, byte[] buffer, CancellationToken cancellationToken)
    {
        try
        {
            await stream.WriteAsync(data, cancellationToken);
        }
        catch (IOException) when (!cancellationToken.IsCancellationRequested)
        {
            try
            {
                while (await stream.ReadAsync(buffer, cancellationToken) > 0)
                {
                }
            }
            catch (Exception e) when (e is OperationCanceledException || (e is IOException && PeerAlert.Find(PeerSettings.Describe(e)) is null))
            {
                // No alert either: the failure of the write says more.
            }

            throw;
        }
    }

    /// <summary>Describes how the conversation ended.</summary>
    /// <param name="Kind">The kind of ending.</param>
    /// <param name="Detail">The error if the connection broke, or an empty string.</param>
    internal sealed record Ending(EndingKind Kind, string Detail);

    internal enum EndingKind
    {
        /// <summary>The peer closed the connection.</summary>
        Closed,

        /// <summary>The peer sent nothing more within the time limit.</summary>
        Quiet,

        /// <summary>The peer has sent 1 MiB.</summary>
        Enough,

        /// <summary>The connection failed.</summary>
        Broken,
    }
}
