using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Performs the TLS handshake on the socket of a connection whose I/O has not started.</summary>
/// <remarks>
/// It sets the features that make Kestrel's HTTPS middleware pass the connection on, and replaces the transport by the
/// TLS stream. Kestrel's middleware serves the connections that this one cannot take.
/// </remarks>
/// <param name="next">Kestrel's HTTPS middleware.</param>
/// <param name="endpoint">The endpoint.</param>
internal sealed class TlsMiddleware(ConnectionDelegate next, TlsEndpoint endpoint)
{
    private static readonly StockTlsFeature s_transportInUse = new(KtlsOffload.Managed(KtlsFallbackReason.TransportInUse));

    private readonly ILogger _logger = endpoint.Logger;
    private bool _refused;

    public async Task OnConnectionAsync(ConnectionContext context)
    {
        DeferredConnection.MarkSeen(context);
        if (context.Features.Get<ITlsConnectionFeature>() is not null)
        {
            await next(context).ConfigureAwait(false);
            return;
        }

        if (context is not DeferredConnection connection)
        {
            await PassOnAsync(context).ConfigureAwait(false);
            return;
        }

        if (!connection.TryTakeSocket())
        {
            if (connection.AbortedInFront is { } aborted)
            {
                // The default transport runs because of the abort, not because of a middleware.
                endpoint.CreateReport(connection).Failed(aborted);
                return;
            }

            await PassOnAsync(context).ConfigureAwait(false);
            return;
        }

        NetworkStream socket;
        try
        {
            socket = new NetworkStream(connection.Socket, ownsSocket: true);
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // Aborted in the meantime.
            endpoint.CreateReport(connection).Failed(e);
            return;
        }

        await PerformTlsAsync(socket, connection).ConfigureAwait(false);
    }

    private async Task PerformTlsAsync(NetworkStream socket, DeferredConnection connection)
    {
        ServerStream stream = new(socket, endpoint, connection);
        await using (stream.ConfigureAwait(false))
        {
            KestrelTlsFeature feature = endpoint.CreateTlsFeature(stream, connection);
            feature.AllowsDelayedCertificate = endpoint.AllowsDelayedCertificate;
            feature.AddTo(connection.Features);
            connection.Features.Set<SslStream>(stream);
            try
            {
                if (await TryPerformHandshakeAsync(stream, connection, feature).ConfigureAwait(false))
                {
                    connection.Features.Set<IKtlsFeature>(stream);
                    await ServeStreamAsync(stream, connection).ConfigureAwait(false);
                }
            }
            finally
            {
                feature.Snapshot();
            }
        }
    }

    /// <summary>
    /// Performs the handshake. Catches handshake failures; other exceptions of the application's callbacks propagate.
    /// </summary>
    private async Task<bool> TryPerformHandshakeAsync(ServerStream stream, DeferredConnection connection, KestrelTlsFeature feature)
    {
        using CancellationTokenSource timeout = new(endpoint.HandshakeTimeout);
        HandshakeReport report = endpoint.CreateReport(connection);
        try
        {
            await stream.PerformHandshakeAsync(feature, report, timeout.Token).ConfigureAwait(false);
        }
        catch (Exception e) when (
            e is AuthenticationException or IOException or OperationCanceledException || connection.AbortReason is not null)
        {
            feature.SetFailure(e);
            report.Failed(e);
            return false;
        }
        catch (Exception e)
        {
            feature.SetFailure(e);
            report.Abandoned(e);
            throw;
        }

        feature.SetHostName(stream.TargetHostName);
        report.Completed(feature, stream.SslProtocol);
        if (_logger.IsEnabled(LogLevel.Debug))
        {
            _logger.Established(connection.ConnectionId, stream.Offload);
        }

        return true;
    }

    private async Task ServeStreamAsync(ServerStream stream, DeferredConnection connection)
    {
        TlsTransport transport = new(stream, connection, _logger);
        await using (transport.ConfigureAwait(false))
        {
            connection.Transport = transport;
            await next(connection).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Passes the connection on, because a middleware in front has used its bytes or another transport accepted it.
    /// </summary>
    private Task PassOnAsync(ConnectionContext context)
    {
        if (endpoint.Options.Mode == KtlsMode.Required || !Interlocked.Exchange(ref _refused, true))
        {
            endpoint.Refuse(KtlsFallbackReason.TransportInUse);
        }

        context.Features.Set<IKtlsFeature>(s_transportInUse);
        return next(context);
    }
}
