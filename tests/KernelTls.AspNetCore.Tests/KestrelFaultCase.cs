using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Describes a fault in the body of a request that an application on Kestrel reads.</summary>
/// <param name="Version">The TLS version.</param>
/// <param name="Fault">The fault of the client.</param>
/// <param name="IsHttp2">Whether to use HTTP/2 instead of HTTP/1.1.</param>
internal sealed record KestrelFaultCase(SslProtocols Version, RecordFault Fault, bool IsHttp2)
{
    public override string ToString() => $"Kestrel, HTTP/{(IsHttp2 ? "2" : "1.1")}";

    /// <summary>Runs the case.</summary>
    /// <param name="server">The server, which has a <see cref="FaultObserver"/>.</param>
    /// <param name="observer">The observer of the application's reads.</param>
    /// <param name="mayWait">Whether the stock server waits, so that this one may.</param>
    public async Task<FaultOutcome> RunAsync(Server server, FaultObserver observer, bool mayWait)
    {
        HttpFaultBody body = new(IsHttp2);
        HttpFaultPeer client = new(Fault, body, FaultLimits.Hang);
        using Socket socket = await server.ConnectSocketAsync();
        using TlsPeer peer = await client.ConnectAsync(socket, Version, isServer: false);
        (string path, Task<(string Ending, long Received)> reading) = observer.Expect(client);
        Task sending = client.SendAsync(peer, body.RequestHead(path), toClient: false);

        await Task.WhenAny(reading, sending);
        await Task.WhenAny(reading, Task.Delay(mayWait ? FaultLimits.Silence : FaultLimits.Hang));
        (string ending, long received) = reading.IsCompleted ? await reading : (FaultOutcome.Waits, client.Delivered);
        await sending.Within(FaultLimits.Hang, $"the fault to be sent, {Fault}, {this}");
        if (Fault.End != FaultEnd.Reset)
        {
            peer.TryEnd();
            await peer.Ended.Within(FaultLimits.Hang, $"the client to see the connection's end, {Fault}, {this}");
        }

        return body.Outcome(ending, received, Fault.End, peer.Alerts);
    }
}
