using System.Collections.Concurrent;
using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>HttpClient in one of the modes, which looks at each of its connections and remembers its stream.</summary>
internal sealed class ModeClient : IDisposable
{
    private readonly ConcurrentQueue<Stream> _streams = new();

    /// <param name="mode">Of its connections.</param>
    /// <param name="version">Of HTTP, and no other.</param>
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

    /// <summary>Of each connection so far, in their order; each was in the mode.</summary>
    public IReadOnlyList<Stream> Streams => [.. _streams];

    public void Dispose() => Http.Dispose();
}
