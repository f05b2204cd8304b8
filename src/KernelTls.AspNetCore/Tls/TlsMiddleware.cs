using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Shakes hands on the socket of a connection that has not started, sets the features that make the stock middleware behind
/// it pass the connection on, and puts the TLS stream in the transport's place. What it cannot take, the stock one serves.
/// </summary>
internal sealed class TlsMiddleware(
    ConnectionDelegate next, EndpointOptions options, KernelTlsServer server, string endpoint, ILogger logger)
{
    private bool _refused;

    public async Task OnConnectionAsync(ConnectionContext context)
    {
        if (context.Features.Get<ITlsConnectionFeature>() is not null)
        {
            await next(context).ConfigureAwait(false);
            return;
        }

        if (context is not DeferredConnection connection || !connection.TryTakeSocket())
        {
            await PassOnAsync(context).ConfigureAwait(false);
            return;
        }

        KtlsStream stream = new(
            new NetworkStream(connection.Socket, ownsSocket: true),
            leaveInnerStreamOpen: false,
            options.ClientValidation,
            userCertificateSelectionCallback: null,
            EncryptionPolicy.RequireEncryption,
            server.Options);
        await using (stream.ConfigureAwait(false))
        {
            TlsFeatures features = new(stream, connection, options.AllowsDelayedCertificate);
            context.Features.Set<ITlsConnectionFeature>(features);
            context.Features.Set<ITlsHandshakeFeature>(features);
            context.Features.Set<ITlsApplicationProtocolFeature>(features);
            context.Features.Set<ISslStreamFeature>(features);
            context.Features.Set<SslStream>(stream);
            if (await TryShakeHandsAsync(stream, connection).ConfigureAwait(false))
            {
                context.Features.Set<IKtlsFeature>(features);
                await ServeAsync(stream, connection).ConfigureAwait(false);
            }
        }
    }

    /// <summary>The application has a say in it: what its callbacks throw, other than what a handshake throws, is not caught.</summary>
    private async Task<bool> TryShakeHandsAsync(KtlsStream stream, DeferredConnection connection)
    {
        using CancellationTokenSource timeout = new(options.HandshakeTimeout);
        try
        {
            await stream.AuthenticateAsServerAsync(options.Create(connection), timeout.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (timeout.IsCancellationRequested)
        {
            logger.HandshakeTimedOut(connection.ConnectionId);
            Tag(connection, "error.type", "tls_handshake_failed");
            return false;
        }
        catch (Exception e) when (e is AuthenticationException or IOException or OperationCanceledException || connection.AbortReason is not null)
        {
            logger.HandshakeFailed(connection.ConnectionId, e);
            Tag(connection, "error.type", "tls_handshake_failed");
            return false;
        }

        if (logger.IsEnabled(LogLevel.Debug))
        {
            logger.Established(connection.ConnectionId, stream.SslProtocol, stream.Offload);
        }

        Tag(connection, "tls.protocol.version", stream.SslProtocol == SslProtocols.Tls13 ? "1.3" : "1.2");
        return true;
    }

    private async Task ServeAsync(KtlsStream stream, DeferredConnection connection)
    {
        TlsTransport transport = new(stream, connection, logger, watchesPeer: !options.AllowsDelayedCertificate);
        await using (transport.ConfigureAwait(false))
        {
            connection.Transport = transport;
            await next(connection).ConfigureAwait(false);
        }
    }

    /// <summary>A middleware in front has looked at the bytes, or another transport accepted the connection.</summary>
    private Task PassOnAsync(ConnectionContext context)
    {
        if (server.Options.Mode == KtlsMode.Required)
        {
            server.Refuse(endpoint, KtlsFallbackReason.TransportInUse);
        }

        if (!Interlocked.Exchange(ref _refused, true))
        {
            server.Refuse(endpoint, KtlsFallbackReason.TransportInUse);
        }

        return next(context);
    }

    /// <summary>The stock middleware's tags of the metric kestrel.connection.duration.</summary>
    private static void Tag(ConnectionContext connection, string name, string value) =>
        connection.Features.Get<IConnectionMetricsTagsFeature>()?.Tags.Add(new KeyValuePair<string, object?>(name, value));
}
