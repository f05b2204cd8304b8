using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Diagnostics;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>Performs one handshake on a socket.</summary>
/// <remarks>
/// OpenSSL reads and writes the socket itself. This class waits when OpenSSL would block, and decides when it pauses:
/// at the ClientHello it selects the settings, and at the server's CertificateRequest the certificate. If the handshake
/// fails, everything it created is freed. If it succeeds, the <see cref="TlsSession"/> owns it.
/// </remarks>
internal sealed partial class TlsHandshake : IDisposable
{
    private readonly Socket _socket;
    private readonly KtlsStream _stream;
    private readonly KtlsOptions _options;
    private readonly SocketReceiver _receiver;
    private readonly SafeTlsContextHandle _context;
    private TlsConnection _connection = null!; // set by Begin
    private SessionMetadata _offered;
    private HandshakeSettings _settings;
    private SslStreamCertificateContext? _certificate;
    private PeerVerifier _verifier;
    private bool _handedOver;

    /// <summary>Initializes a new instance of the <see cref="TlsHandshake"/> class.</summary>
    /// <param name="socket">The connected TCP socket.</param>
    /// <param name="context">The SSL_CTX created from the settings.</param>
    /// <param name="settings">The settings to negotiate.</param>
    /// <param name="stream">The stream, which gets the outcome and is passed to callbacks.</param>
    /// <param name="options">The kernel TLS options of the connection.</param>
    public TlsHandshake(
        Socket socket, SafeTlsContextHandle context, HandshakeSettings settings, KtlsStream stream, KtlsOptions options)
    {
        _socket = socket;
        _stream = stream;
        _options = options;
        _settings = settings;
        _certificate = settings.Certificate;
        _context = context;
        _verifier = new PeerVerifier(stream, settings, PublishProgress);
        _receiver = new SocketReceiver(socket);
    }

    /// <summary>Performs the handshake without blocking a thread, gives the stream its outcome, and disposes this object.</summary>
    /// <remarks>One method, because each asynchronous one that waits is more code to compile when a process starts.</remarks>
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        HandshakeTelemetry telemetry = HandshakeTelemetry.Start(IsServer, TargetHost);
        try
        {
            cancellationToken.ThrowIfCancellationRequested();
            if (IsServer)
            {
                try
                {
                    // Not FirstRecord.WaitAsync, which is another method that waits.
                    if (!HasFirstRecord)
                    {
                        await _receiver.WaitReadableAsync(cancellationToken).ConfigureAwait(false);
                        await FirstRecord.WaitForRestAsync(
                            _socket, keepsRecord: false, cancellationToken).ConfigureAwait(false);
                    }
                }
                catch (Exception e) when (e is SocketException or ObjectDisposedException)
                {
                    throw FailedWait(e);
                }
            }
            else
            {
                SocketOptions.MakeNonBlocking(_socket, TlsErrors.CannotAuthenticate);
            }

            Begin();
            int refusals = 0;
            while (!Step(out NativeStatus wanted))
            {
                switch (wanted)
                {
                    case NativeStatus.WantWrite:
                        refusals = await SocketReadiness.WaitForRoomAsync(
                            _socket, refusals, cancellationToken).ConfigureAwait(false);
                        break;
                    case NativeStatus.WantRead:
                        try
                        {
                            await _receiver.WaitReadableAsync(cancellationToken).ConfigureAwait(false);
                        }
                        catch (SocketException e)
                        {
                            _connection.WaitFailed(_receiver, TlsErrors.CannotAuthenticate, e);
                        }

                        break;
                    default:
                        await DecideAsync(wanted, cancellationToken).ConfigureAwait(false);
                        break;
                }
            }

            _stream.Adopt(Complete(), telemetry);
        }
        catch (Exception e)
        {
            _stream.Fail(this, e, telemetry).Throw();
        }
        finally
        {
            Dispose();
        }
    }

    public void Dispose()
    {
        if (!_handedOver)
        {
            _connection?.Dispose();
            _verifier.Certificate?.Dispose();
        }
    }

    public bool IsServer => _settings.IsServer;

    /// <summary>
    /// Gets or sets a value that indicates whether the caller has waited for the client's first record by
    /// <see cref="FirstRecord.WaitAsync"/>.
    /// </summary>
    public bool HasFirstRecord { get; set; }

    /// <summary>Gets the socket if this end sent the peer a fatal alert; otherwise <see langword="null"/>.</summary>
    public Socket? AlertedSocket { get; private set; }

    /// <summary>Gets a value that indicates whether this end or its callback refused the peer.</summary>
    public bool IsPeerRefused { get; private set; }

    /// <summary>Client: gets the name as given by the caller. Server: empty.</summary>
    public string TargetHost => _settings.GivenHost;

    private static IOException FailedWait(Exception e) =>
        TlsErrors.Socket(TlsErrors.CannotAuthenticate, (e as SocketException)?.SocketErrorCode ?? SocketError.OperationAborted);

    /// <summary>Binds OpenSSL to the socket. From here on both .NET and OpenSSL use it.</summary>
    private void Begin()
    {
        SocketReadiness.Prepare();
        _connection = TlsConnection.Create(_context, _socket.SafeHandle, _settings.ServerName);
        if (_settings.Resumes)
        {
            ClientSessions.Shared.TryOffer(_settings.Context, _settings.TargetHost, _connection, out _offered);
        }

        Staple();
    }

    private bool Step(out NativeStatus wanted)
    {
        NativeResult result = _connection.Handshake(_verifier);
        wanted = result.Status;
        switch (wanted)
        {
            case NativeStatus.Ok:
                return true;
            case NativeStatus.WantRead:
            case NativeStatus.WantWrite:
            case NativeStatus.WantClientHello:
            case NativeStatus.WantCertificate:
                return false;
            default:
                RecordAlert(result);
                IsPeerRefused = _verifier.HasDecided || TlsErrors.IsCertificateMissing(result);
                if (IsServer)
                {
                    PublishServerName(_connection.GetInfo());
                }

                // The refused certificate is the cause; OpenSSL's error only reports the refusal.
                if (_verifier.Refusal is { } refusal)
                {
                    TlsErrors.ThrowRefusal(refusal);
                }

                throw TlsErrors.Handshake(result);
        }
    }

    /// <summary>
    /// Records that OpenSSL sent an alert. It sends one for what it refuses, and none if the peer's alert ended the
    /// handshake.
    /// </summary>
    private void RecordAlert(in NativeResult result)
    {
        if (result.Status == NativeStatus.TlsError && !result.IsPeerAlert)
        {
            AlertedSocket = _socket;
        }
    }

    private void Abort(TlsAlert alert)
    {
        _connection.Abort(alert);
        AlertedSocket = _socket;
    }

    private async Task DecideAsync(NativeStatus pause, CancellationToken cancellationToken)
    {
        if (pause == NativeStatus.WantCertificate)
        {
            _certificate = _settings.CertificateSelector!.Select(_verifier.Certificate, _connection.GetAcceptableIssuers());
            _connection.UseCertificate(_certificate);
            return;
        }

        SslClientHelloInfo hello = _connection.GetClientHello();
        RuntimeInternals.PublishTargetHost(_stream, hello.ServerName);
        HandshakeSettings? chosen;
        try
        {
            chosen = await _settings.Selection!(hello, cancellationToken).ConfigureAwait(false);
        }
        catch
        {
            // The alert blames this end, not the peer. The details stay local.
            Abort(TlsAlert.InternalError);
            throw;
        }

        if (chosen is null)
        {
            Abort(hello.ServerName.Length > 0 ? TlsAlert.UnrecognizedName : TlsAlert.HandshakeFailure);
            throw new AuthenticationException(
                $"The ServerCertificateSelectionCallback returned no certificate for '{hello.ServerName}'.");
        }

        UseSettings(chosen);
    }

    /// <summary>Continues the handshake as if it had begun with these settings.</summary>
    private void UseSettings(HandshakeSettings settings)
    {
        if (TlsContexts.TryGet(settings.Context, out KtlsFallbackReason reason) is not { } context)
        {
            Abort(TlsAlert.InternalError);
            throw new AuthenticationException(
                $"OpenSSL refused the options that a callback chose ({reason}). Check that the certificate matches its key "
                + "and that the cipher suites exist.");
        }

        _settings = settings;
        _certificate = settings.Certificate;
        _verifier = new PeerVerifier(_stream, settings, PublishProgress);
        _connection.SwitchContext(context);
        Staple();
    }

    /// <summary>
    /// Publishes the properties negotiated so far, for a callback that reads the stream's properties during the
    /// handshake.
    /// </summary>
    private void PublishProgress()
    {
        ConnectionInfo info = _connection.GetInfo();
        RuntimeInternals.Publish(
            _stream,
            TlsConnection.ToSslProtocols(info.ProtocolVersion),
            (TlsCipherSuite)info.CipherSuite,
            info.ApplicationProtocol,
            inHandshake: true);
        Bystanders.Publish(
            _stream,
            IsServer ? _certificate?.TargetCertificate : RuntimeBehavior.RefusesInHandshake ? null : _verifier.Certificate);
        if (IsServer)
        {
            PublishServerName(info);
        }
    }

    private void PublishServerName(in ConnectionInfo info) =>
        RuntimeInternals.PublishTargetHost(_stream, ClientHelloParser.ServerNameOf(info));

    private void Staple()
    {
        if (_settings.IsServer && _certificate is not null
            && RuntimeInternals.OcspResponseOf(_certificate) is { } response)
        {
            _connection.SetOcspResponse(response);
        }
    }

    private TlsSession Complete()
    {
        ConnectionInfo info = _connection.GetInfo();
        if (_verifier.Certificate is null)
        {
            if (info.Resumed != 0 && _connection.GetPeerCertificates() is { Length: > 0 } chain)
            {
                _verifier.ValidateResumed(chain, _offered.CachedResult);
            }
            else
            {
                _verifier.ValidateAbsence();
            }

            IsPeerRefused = _verifier.HasDecided;
            _verifier.Refusal?.Throw();
        }

        bool isSent = _settings.IsServer
            || (info.Resumed != 0 ? _offered.SentCertificate : info.CertificateRequested != 0);
        TlsSession session = new(
            _socket,
            _connection,
            _receiver,
            _settings,
            isSent ? _certificate?.TargetCertificate : null,
            _verifier,
            info,
            _options,
            Platform.Current);
        _handedOver = true;
        if (SocketOptions.ApplyToKernel(_socket, IsServer, _options, info))
        {
            session.Receiver.Check(new PaddingCheck(IsServer));
        }

        return session;
    }
}
