using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>A peer that sends an HTTP message with a fault in its body.</summary>
internal sealed class HttpFaultPeer(RecordFault fault, HttpFaultBody body, TimeSpan limit)
{
    private readonly TaskCompletionSource _first = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private long _size = long.MaxValue;

    /// <summary>Gets the length of the body that was read.</summary>
    public long Delivered { get; private set; }

    private void Deliver(long received)
    {
        Delivered = received;
        if (received >= body.Payload(FaultScene.Usual))
        {
            _first.TrySetResult();
        }
    }

    /// <summary>Performs the handshake.</summary>
    public async Task<TlsPeer> ConnectAsync(Socket socket, SslProtocols version, bool isServer)
    {
        TlsPeer peer = new(socket, version, isServer, body.Protocol);
        Assert.True(await peer.ShakeHandsAsync().Within(limit, $"a handshake, {fault}"), $"a handshake, {fault}");
        peer.Watch();
        return peer;
    }

    /// <summary>Sends the message up to the fault, and the fault.</summary>
    public async Task SendAsync(TlsPeer peer, byte[] head, bool toClient)
    {
        byte[] start = peer.Seal(RecordType.ApplicationData, head);
        FaultScene scene = new(peer, body.Content, toClient);
        byte[] good = scene.Data();
        List<byte[]> segments = [.. fault.Bytes(scene)];
        if (fault.End == FaultEnd.Open)
        {
            segments.Add(scene.Data());
        }

        if (fault.End == FaultEnd.Open)
        {
            Volatile.Write(ref _size, body.Payload(scene.Size));
        }

        await peer.SendAsync((byte[])[.. start, .. good]);
        await _first.Task.Within(limit, $"the data in front of the fault, {fault}");
        try
        {
            foreach (byte[] segment in segments)
            {
                await peer.SendAsync(segment).Within(limit, $"the fault to be sent, {fault}");
            }

            if (fault.End is FaultEnd.Fin or FaultEnd.Reset)
            {
                peer.End(reset: fault.End == FaultEnd.Reset);
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The other end has closed the connection.
        }
    }

    /// <summary>Reads the body, and returns how it ended and its length.</summary>
    public async Task<(string Ending, long Received)> ReadAsync(Stream from)
    {
        long received = 0;
        byte[] buffer = new byte[64 * 1024];
        try
        {
            while (received < Volatile.Read(ref _size))
            {
                int read = await from.ReadAsync(buffer);
                if (read == 0)
                {
                    return (FaultOutcome.End, received);
                }

                Pattern.AssertAt(received, buffer.AsSpan(0, read));
                received += read;
                Deliver(received);
            }

            return (FaultOutcome.All, received);
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return (FaultOutcome.Name(e), received);
        }
    }
}
