// A reverse proxy that does nothing for kernel TLS but reference packages. Its /forwarded goes by YARP to its own "/", which tells what
// became of the connection that it was asked on; /client tells what became of YARP's end of that.
using System.Diagnostics.Tracing;
using KernelTls.AspNetCore;
using Yarp.ReverseProxy.Configuration;
using Yarp.ReverseProxy.Forwarder;

using Listener listener = new();
WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
builder.Services.AddReverseProxy();
WebApplication application = builder.Build();
application.MapGet("/", (HttpContext context) => context.Features.Get<IKtlsFeature>()?.Offload.ToString() ?? "stock");
application.MapGet("/client", () => listener.Last);
application.MapGet("/forwarded", async (HttpContext context, IHttpForwarder forwarder, IForwarderHttpClientFactory clients) =>
{
    using HttpMessageInvoker client = clients.CreateClient(new ForwarderHttpClientContext
    {
        NewConfig = new HttpClientConfig { DangerousAcceptAnyServerCertificate = true },
    });
    await forwarder.SendAsync(context, $"https://{context.Request.Host}/", client, new ForwarderRequestConfig(), new ToRoot());
});
application.Run();

internal sealed class ToRoot : HttpTransformer
{
    public override async ValueTask TransformRequestAsync(
        HttpContext httpContext, HttpRequestMessage proxyRequest, string destinationPrefix, CancellationToken cancellationToken)
    {
        await base.TransformRequestAsync(httpContext, proxyRequest, destinationPrefix, cancellationToken);
        proxyRequest.RequestUri = new Uri(destinationPrefix);
    }
}

internal sealed class Listener : EventListener
{
    public string Last { get; private set; } = "nothing";

    protected override void OnEventSourceCreated(EventSource source)
    {
        if (source.Name == "KernelTls")
        {
            EnableEvents(source, EventLevel.Informational);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs e)
    {
        if (e.EventName is "HandshakeCompleted" or "Fallback" && e.Payload![0] is false)
        {
            Last = $"{e.EventName}: {string.Join(' ', e.Payload.Skip(e.EventName == "Fallback" ? 1 : 3))}";
        }
    }
}
