using System.Net;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a fault in the body of a response that HttpClient reads.</summary>
/// <param name="Mode">The mode of the client.</param>
/// <param name="Version">The TLS version.</param>
/// <param name="Fault">The fault of the server.</param>
/// <param name="IsHttp2">Whether to use HTTP/2 instead of HTTP/1.1.</param>
internal sealed record HttpClientFaultCase(TlsMode Mode, SslProtocols Version, RecordFault Fault, bool IsHttp2)
{
    public override string ToString() => $"HttpClient, HTTP/{(IsHttp2 ? "2" : "1.1")}";

    /// <summary>Runs the case.</summary>
    /// <param name="mayWait">Whether the stock client waits, so that this one may.</param>
    public async Task<FaultOutcome> RunAsync(bool mayWait)
    {
        HttpFaultBody body = new(IsHttp2);
        HttpFaultPeer server = new(Fault, body, FaultLimits.Hang);
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using HttpClient client = NewClient();
        Task<HttpResponseMessage> asking = client.GetAsync(
            new Uri($"https://localhost:{((IPEndPoint)listener.LocalEndPoint!).Port}/"), HttpCompletionOption.ResponseHeadersRead);
        using Socket socket = await listener.AcceptAsync().InTime("HttpClient's connection");
        socket.NoDelay = true;
        using TlsPeer peer = await server.ConnectAsync(socket, Version, isServer: true);
        await peer.UntilAsync(body.IsRequest).Within(FaultLimits.Hang, "HttpClient's request");
        Task sending = server.SendAsync(peer, body.ResponseHead, toClient: true);
        Task<(string Ending, long Received)> reading = ReadAsync(server, asking);

        await Task.WhenAny(reading, sending);
        await Task.WhenAny(reading, Task.Delay(mayWait ? FaultLimits.Silence : FaultLimits.Hang));
        (string ending, long received) = reading.IsCompleted ? await reading : (FaultOutcome.Waits, server.Delivered);
        client.Dispose();
        if (Fault.End != FaultEnd.Reset)
        {
            // A waiting read ends with its connection.
            peer.TryEnd();
            await peer.Ended.Within(FaultLimits.Hang, $"the server to see the connection's end, {Fault}, {this}");
        }

        await sending.Within(FaultLimits.Hang, $"the fault to be sent, {Fault}, {this}");
        return body.Outcome(ending, received, Fault.End, peer.Alerts);
    }

    private static async Task<(string Ending, long Received)> ReadAsync(HttpFaultPeer server, Task<HttpResponseMessage> asking)
    {
        try
        {
            using HttpResponseMessage response = await asking;
            using Stream stream = await response.Content.ReadAsStreamAsync();
            return await server.ReadAsync(stream);
        }
        catch (Exception e) when (e is HttpRequestException or OperationCanceledException)
        {
            return (FaultOutcome.Name(e), 0);
        }
    }

    private HttpClient NewClient()
    {
        SocketsHttpHandler handler = new() { UseProxy = false };
        handler.SslOptions = Handshakes.ClientOptions(Version);
        handler.SslOptions.TargetHost = null;
        if (Mode != TlsMode.Stock)
        {
            handler.UseKernelTls(Modes.OptionsOf(Mode));
        }

        return new HttpClient(handler)
        {
            DefaultRequestVersion = IsHttp2 ? HttpVersion.Version20 : HttpVersion.Version11,
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
    }
}
