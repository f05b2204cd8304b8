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
    ConnectionDelegate next, EndpointOptions options, KernelTlsServer server, string endpoint, object? metrics, ILogger logger)
{
    private bool _refused;

    public async Task OnConnectionAsync(ConnectionContext context)
    {
        DeferredConnection.NoteSeen(context);
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

        NetworkStream socket;
        try
        {
            socket = new NetworkStream(connection.Socket, ownsSocket: true);
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // Aborted meanwhile.
            logger.HandshakeFailed(connection.ConnectionId, e);
            return;
        }

        await ServeAsync(socket, connection).ConfigureAwait(false);
    }

    private async Task ServeAsync(NetworkStream socket, DeferredConnection connection)
    {
        KtlsStream stream = new(
            socket,
            leaveInnerStreamOpen: false,
            options.ClientValidation,
            userCertificateSelectionCallback: null,
            EncryptionPolicy.RequireEncryption,
            server.Options);
        await using (stream.ConfigureAwait(false))
        {
            TlsFeatures features = new(stream, connection, options.AllowsDelayedCertificate);
            connection.Features.Set<ITlsConnectionFeature>(features);
            connection.Features.Set<ITlsHandshakeFeature>(features);
            connection.Features.Set<ITlsApplicationProtocolFeature>(features);
            connection.Features.Set<ISslStreamFeature>(features);
            connection.Features.Set<SslStream>(stream);
            if (await TryShakeHandsAsync(stream, connection).ConfigureAwait(false))
            {
                connection.Features.Set<IKtlsFeature>(features);
                await ServeAsync(stream, connection).ConfigureAwait(false);
            }
        }
    }

    /// <summary>The application has a say in it: what its callbacks throw, other than what a handshake throws, is not caught.</summary>
    private async Task<bool> TryShakeHandsAsync(KtlsStream stream, DeferredConnection connection)
    {
        using CancellationTokenSource timeout = new(options.HandshakeTimeout);
        HandshakeMeter meter = new(metrics, connection);
        try
        {
            await stream.AuthenticateAsServerAsync(options.Create(connection), timeout.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException e) when (timeout.IsCancellationRequested)
        {
            logger.HandshakeTimedOut(connection.ConnectionId);
            meter.Failed(connection, e);
            return false;
        }
        catch (Exception e) when (
            e is AuthenticationException or IOException or OperationCanceledException || connection.AbortReason is not null)
        {
            logger.HandshakeFailed(connection.ConnectionId, e);
            meter.Failed(connection, e);
            return false;
        }

        if (logger.IsEnabled(LogLevel.Debug))
        {
            logger.Established(connection.ConnectionId, stream.SslProtocol, stream.Offload);
        }

        meter.Completed(connection, stream.SslProtocol);
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
        if (server.Options.Mode == KtlsMode.Required || !Interlocked.Exchange(ref _refused, true))
        {
            server.Refuse(endpoint, KtlsFallbackReason.TransportInUse);
        }

        return next(context);
    }
}
