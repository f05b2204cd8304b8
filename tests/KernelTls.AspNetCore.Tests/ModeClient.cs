using System.Collections.Concurrent;
using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Runs HttpClient in one of the modes, checks each of its connections and stores its stream.</summary>
internal sealed class ModeClient : IDisposable
{
    private readonly ConcurrentQueue<Stream> _streams = new();

    /// <summary>Initializes a new instance of the <see cref="ModeClient"/> class.</summary>
    /// <param name="mode">The mode of its connections.</param>
    /// <param name="version">The only version of HTTP.</param>
    /// <param name="configure">More settings of the handler.</param>
    public ModeClient(TlsMode mode, string version, Action<SocketsHttpHandler>? configure = null)
    {
        Http = Server.CreateClient(version, handler =>
        {
            if (mode != TlsMode.Stock)
            {
                handler.UseKernelTls(Modes.OptionsOf(mode));
            }

            handler.PlaintextStreamFilter = (context, _) =>
            {
                Modes.AssertIn(mode, (SslStream)context.PlaintextStream);
                _streams.Enqueue(context.PlaintextStream);
                return ValueTask.FromResult(context.PlaintextStream);
            };
            configure?.Invoke(handler);
        });
    }

    public HttpClient Http { get; }

    /// <summary>Gets the streams of the connections so far, in order. Each was in the mode.</summary>
    public IReadOnlyList<Stream> Streams => [.. _streams];

    public void Dispose() => Http.Dispose();
}
