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
/// <param name="next">The stock middleware.</param>
/// <param name="endpoint">The endpoint.</param>
/// <param name="options">What the stock middleware was given.</param>
internal sealed class TlsMiddleware(ConnectionDelegate next, ServedEndpoint endpoint, EndpointOptions options)
{
    private readonly ILogger _logger = endpoint.Logger;
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
            endpoint.Report(connection).Failed(e);
            return;
        }

        await ServeAsync(socket, connection).ConfigureAwait(false);
    }

    private async Task ServeAsync(NetworkStream socket, DeferredConnection connection)
    {
        ServerStream stream = new(socket, options.ClientValidation, endpoint.Options);
        await using (stream.ConfigureAwait(false))
        {
            object feature = options.CreateTlsFeature(stream, connection);
            KestrelInternals.AllowDelayedCertificate(feature, options.AllowDelayedCertificate);
            connection.Features.Set((ITlsConnectionFeature)feature);
            connection.Features.Set((ITlsHandshakeFeature)feature);
            connection.Features.Set((ITlsApplicationProtocolFeature)feature);
            connection.Features.Set((ISslStreamFeature)feature);
            connection.Features.Set<SslStream>(stream);
            try
            {
                if (await TryShakeHandsAsync(stream, connection, feature).ConfigureAwait(false))
                {
                    connection.Features.Set<IKtlsFeature>(new KtlsFeature(stream));
                    await ServeAsync(stream, connection).ConfigureAwait(false);
                }
            }
            finally
            {
                KestrelInternals.KeepTlsFeature(feature);
            }
        }
    }

    /// <summary>The application has a say in it: what its callbacks throw, other than what a handshake throws, is not caught.</summary>
    private async Task<bool> TryShakeHandsAsync(KtlsStream stream, DeferredConnection connection, object feature)
    {
        using CancellationTokenSource timeout = new(options.HandshakeTimeout);
        HandshakeReport report = endpoint.Report(connection);
        ServerHandshake handshake = new(options, connection, stream, feature, report);
        try
        {
            await handshake.RunAsync(timeout.Token).ConfigureAwait(false);
        }
        catch (Exception e) when (
            e is AuthenticationException or IOException or OperationCanceledException || connection.AbortReason is not null)
        {
            KestrelInternals.SetFailure(feature, e);
            report.Failed(e);
            return false;
        }
        catch (Exception e)
        {
            KestrelInternals.SetFailure(feature, e);
            report.Abandoned(e);
            throw;
        }

        KestrelInternals.SetHostName(feature, stream.TargetHostName);
        report.Completed(feature, stream.SslProtocol);
        if (_logger.IsEnabled(LogLevel.Debug))
        {
            _logger.Established(connection.ConnectionId, stream.Offload);
        }

        return true;
    }

    private async Task ServeAsync(ServerStream stream, DeferredConnection connection)
    {
        TlsTransport transport = new(stream, connection, _logger);
        await using (transport.ConfigureAwait(false))
        {
            connection.Transport = transport;
            await next(connection).ConfigureAwait(false);
        }
    }

    /// <summary>A middleware in front has looked at the bytes, or another transport accepted the connection.</summary>
    private Task PassOnAsync(ConnectionContext context)
    {
        if (endpoint.Options.Mode == KtlsMode.Required || !Interlocked.Exchange(ref _refused, true))
        {
            endpoint.Refuse(KtlsFallbackReason.TransportInUse);
        }

        return next(context);
    }
}
