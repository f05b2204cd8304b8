using System.Collections.Concurrent;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;

namespace KernelTls.FileServer;

/// <summary>Lists the open connections, as seen by a connection middleware after UseHttps.</summary>
internal sealed class OpenConnections
{
    private readonly ConcurrentDictionary<string, Description> _open = new();

    /// <summary>Tracks a connection. This is the middleware.</summary>
    public ConnectionDelegate Track(ConnectionDelegate next) => async connection =>
    {
        ITlsHandshakeFeature tls = connection.Features.GetRequiredFeature<ITlsHandshakeFeature>();
        KtlsOffload? offload = connection.Features.Get<IKtlsFeature>()?.Offload;
        KtlsFallbackReason stock = KtlsPlatform.Probe().NotSupportedReason;
        _open[connection.ConnectionId] = new Description(
            connection.ConnectionId,
            $"{connection.RemoteEndPoint}",
            $"{tls.Protocol}",
            $"{tls.NegotiatedCipherSuite}",
            Describe(offload?.Send ?? KtlsDataPath.Managed, offload?.SendFallbackReason ?? stock),
            Describe(offload?.Receive ?? KtlsDataPath.Managed, offload?.ReceiveFallbackReason ?? stock));
        try
        {
            await next(connection);
        }
        finally
        {
            _open.TryRemove(connection.ConnectionId, out _);
        }
    };

    public IEnumerable<Description> Describe() => _open.Values.OrderBy(d => d.Id, StringComparer.Ordinal);

    private static string Describe(KtlsDataPath path, KtlsFallbackReason reason) =>
        reason == KtlsFallbackReason.None ? $"{path}" : $"{path}: {reason}";

    /// <summary>Send and Receive contain the data path and, if it is not the kernel, the reason.</summary>
    internal sealed record Description(string Id, string Client, string Protocol, string Cipher, string Send, string Receive);
}
