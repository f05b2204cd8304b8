// Requests the address in its argument by a client of IHttpClientFactory and by an HttpClient of its own. It knows nothing of kernel TLS, and
// prints what became of the connections.
using System.Diagnostics.Tracing;
using Microsoft.Extensions.DependencyInjection;

using Listener listener = new();
ServiceCollection services = new();
services.AddHttpClient();
await using ServiceProvider provider = services.BuildServiceProvider();
using HttpClient made = provider.GetRequiredService<IHttpClientFactory>().CreateClient();
Console.WriteLine((await made.GetAsync(args[0])).StatusCode);
using HttpClient own = new();
Console.WriteLine((await own.GetAsync(args[0])).StatusCode);

internal sealed class Listener : EventListener
{
    protected override void OnEventSourceCreated(EventSource source)
    {
        if (source.Name == "KernelTls")
        {
            EnableEvents(source, EventLevel.Informational);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs e)
    {
        if (e.EventName is "HandshakeCompleted" or "Fallback")
        {
            Console.WriteLine($"{e.EventName}: {string.Join(' ', e.Payload!.Skip(e.EventName == "Fallback" ? 1 : 3)).Trim()}");
        }
    }
}
