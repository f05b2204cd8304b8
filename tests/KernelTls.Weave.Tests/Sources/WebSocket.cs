// Talks to a server of web sockets in all the ways in which ClientWebSocket connects, and prints what became of each. Its arguments are the ports
// of a server and of nothing.
using System;
using System.Diagnostics.Tracing;
using System.Net;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public static class Sample
{
    public static async Task Main(string[] arguments)
    {
        using Listener events = new();
        foreach (string way in (string[])["default", "no proxy", "header", "delegate", "callback", "cookies", "refused", "null"])
        {
            events.Report = "";
            using ClientWebSocket socket = new();
            try
            {
                await ConnectAsync(socket, way, $"wss://localhost:{arguments[way == "refused" ? 1 : 0]}/");
                await socket.SendAsync(Encoding.ASCII.GetBytes("ping"), WebSocketMessageType.Text, true, CancellationToken.None);
                byte[] answer = new byte[100];
                WebSocketReceiveResult received = await socket.ReceiveAsync(answer, CancellationToken.None);
                await socket.CloseAsync(WebSocketCloseStatus.NormalClosure, "done", CancellationToken.None);
                Console.WriteLine($"{way}: {Encoding.ASCII.GetString(answer, 0, received.Count)} {socket.SubProtocol} {socket.State}{events.Report}");
            }
            catch (Exception e)
            {
                Console.WriteLine($"{way}: {Describe(e)} {socket.State}{events.Report}");
            }
        }
    }

    private static Task ConnectAsync(ClientWebSocket socket, string way, string address)
    {
        switch (way)
        {
            case "no proxy":
                socket.Options.Proxy = null;
                break;
            case "header":
                socket.Options.SetRequestHeader("X-Some", "header");
                socket.Options.AddSubProtocol("some");
                break;
            case "callback":
                socket.Options.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                break;
            case "cookies":
                socket.Options.Cookies = new CookieContainer();
                break;
            case "delegate":
                Func<Uri, CancellationToken, Task> connect = socket.ConnectAsync;
                return connect(new Uri(address), CancellationToken.None);
        }

        return socket.ConnectAsync(way == "null" ? null : new Uri(address), CancellationToken.None);
    }

    private static string Describe(Exception e) =>
        e is null ? "" : $"{e.GetType().Name} ({e.Message}) {Describe(e.InnerException)}".TrimEnd();

    /// <summary>Records what the library reports of a connection.</summary>
    private sealed class Listener : EventListener
    {
        public string Report { get; set; } = "";

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "KernelTls")
            {
                EnableEvents(eventSource, EventLevel.Informational);
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName == "HandshakeCompleted")
            {
                Report = $" {eventData.Payload[3]} {eventData.Payload[5]} {eventData.Payload[^1]}";
            }
            else if (eventData.EventName == "Fallback")
            {
                Report = $" {eventData.Payload[1]} {eventData.Payload[^1]}";
            }
        }
    }
}
