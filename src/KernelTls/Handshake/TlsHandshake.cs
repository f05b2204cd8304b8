using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// One handshake on a socket: OpenSSL reads and writes the socket itself, this class waits where it would block and decides
/// where it pauses: at the ClientHello, which settings answer it; at the server's CertificateRequest, which certificate to
/// show. On failure everything it made is freed; on success it belongs to the <see cref="TlsSession"/>.
/// </summary>
internal sealed class TlsHandshake : IDisposable
{
    private const string Failed = "The TLS handshake failed";

    private readonly Socket _socket;
    private readonly TransportOptions _transport;
    private readonly SslStream _stream;
    private readonly KtlsOptions _options;
    private readonly SocketReceiver _receiver;
    private readonly SafeTlsContextHandle _context;
    private TlsConnection _connection = null!; // from Begin on
    private SessionOrigin _offered;
    private HandshakeSettings _settings;
    private SslStreamCertificateContext? _certificate;
    private PeerVerifier _verifier;
    private bool _handedOver;

    /// <param name="socket">A connected TCP socket.</param>
    /// <param name="context">The SSL_CTX made from the settings.</param>
    /// <param name="settings">What to negotiate.</param>
    /// <param name="stream">The stream, as callbacks see it.</param>
    /// <param name="options">How the connection uses the kernel.</param>
    public TlsHandshake(
        Socket socket, SafeTlsContextHandle context, HandshakeSettings settings, SslStream stream, KtlsOptions options)
    {
        _socket = socket;
        _transport = new TransportOptions(
            settings.IsServer, options.BusyPoll, options.ExpectNoPadding, options.ZeroCopySendFile);
        _stream = stream;
        _options = options;
        _settings = settings;
        _certificate = settings.Certificate;
        _context = context;
        _verifier = new PeerVerifier(stream, settings, PublishProgress);
        _receiver = new SocketReceiver(socket);
    }

    /// <summary>Shakes hands without blocking a thread.</summary>
    public async Task<TlsSession> RunAsync(CancellationToken cancellationToken)
    {
        cancellationToken.ThrowIfCancellationRequested();
        Begin();
        while (!Step(out NativeStatus wanted))
        {
            switch (wanted)
            {
                case NativeStatus.WantWrite:
                    await Readiness.WaitToWriteAsync(_socket.SafeHandle, cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.WantRead:
                    Check(await _receiver.ReceiveAsync(Memory<byte>.Empty, cancellationToken).ConfigureAwait(false));
                    break;
                default:
                    await DecideAsync(wanted, cancellationToken).ConfigureAwait(false);
                    break;
            }
        }

        return Complete();
    }

    /// <summary>Shakes hands, blocking; the socket's timeouts limit each wait.</summary>
    public TlsSession Run()
    {
        Begin();
        bool isLate = false;
        while (!Step(out NativeStatus wanted))
        {
            if (isLate && wanted == NativeStatus.WantRead)
            {
                throw TlsErrors.Socket(Failed, SocketError.TimedOut);
            }

            isLate = false;
            switch (wanted)
            {
                case NativeStatus.WantWrite:
                    if (!_socket.Poll(SocketTimeouts.ToTimeSpan(_socket.SendTimeout), SelectMode.SelectWrite))
                    {
                        throw TlsErrors.Socket(Failed, SocketError.TimedOut);
                    }

                    break;
                case NativeStatus.WantRead:
                    isLate = !_receiver.WaitReadable();
                    break;
                default:
                    // The callbacks of blocking handshakes are synchronous: this does not wait.
                    DecideAsync(wanted, CancellationToken.None).GetAwaiter().GetResult();
                    break;
            }
        }

        return Complete();
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

    /// <summary>The socket, where this end has sent the peer a fatal alert; <see langword="null"/> otherwise.</summary>
    public Socket? AlertedSocket { get; private set; }

    /// <summary>Client: the name as it was given; server: empty.</summary>
    public string TargetHost => _settings.GivenHost;

    /// <summary>The socket is OpenSSL's as well from here on.</summary>
    private void Begin()
    {
        _transport.ApplyBusyPoll(_socket);
        try
        {
            // An asynchronous operation makes .NET put the descriptor into non-blocking mode, for good, and emulate blocking in
            // synchronous ones. OpenSSL must never block inside a record. Sending nothing is the cheapest such operation.
            ValueTask<int> nothing = _socket.SendAsync(ReadOnlyMemory<byte>.Empty, SocketFlags.None);
            if (!nothing.IsCompletedSuccessfully)
            {
                nothing.AsTask().GetAwaiter().GetResult();
            }
        }
        catch (SocketException e)
        {
            // The peer has gone before a word was said.
            throw TlsErrors.Socket(Failed, e.SocketErrorCode);
        }

        _connection = TlsConnection.Create(_context, _socket.SafeHandle, _settings.ServerName);
        if (_settings.Resumes)
        {
            ClientSessions.Shared.TryOffer(_settings.Context, _settings.TargetHost, _connection, out _offered);
        }

        if (!IsServer)
        {
            RuntimeInternals.PublishTargetHost(_stream, _settings.GivenHost);
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
                NoteAlert(result);

                // The verdict on the certificate is the cause; OpenSSL's error only echoes it.
                _verifier.Refusal?.Throw();
                throw TlsErrors.Handshake(result);
        }
    }

    /// <summary>OpenSSL ends what it refuses with an alert, and what the peer's alert has ended with none.</summary>
    private void NoteAlert(in NativeResult result)
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

    private void Check(SocketOutcome outcome)
    {
        if (outcome.RecordErrno != 0)
        {
            // TLS 1.2 switches receiving before Finished, which then waits in the kernel as a control record.
            _connection.ReceiveFailed(outcome.RecordErrno);
        }
        else if (outcome.Error != SocketError.Success)
        {
            throw TlsErrors.Socket(Failed, outcome.Error);
        }
    }

    private async Task DecideAsync(NativeStatus pause, CancellationToken cancellationToken)
    {
        if (pause == NativeStatus.WantCertificate)
        {
            string[] issuers = [.. _connection.GetAcceptableIssuers().Select(n => new X500DistinguishedName(n).Name)];
            _certificate = _settings.CertificateSelector!.Select(_verifier.Certificate, issuers);
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
            // The peer is told that it is not to blame; what went wrong is for this end only.
            Abort(TlsAlert.InternalError);
            throw;
        }

        if (chosen is null)
        {
            Abort(hello.ServerName.Length > 0 ? TlsAlert.UnrecognizedName : TlsAlert.HandshakeFailure);
            throw new AuthenticationException(
                $"The ServerCertificateSelectionCallback gave no certificate for '{hello.ServerName}'.");
        }

        Answer(chosen);
    }

    /// <summary>From here on the handshake is what it would have been with these settings from the start.</summary>
    private void Answer(HandshakeSettings settings)
    {
        if (TlsContexts.TryGet(settings.Context, out KtlsFallbackReason reason) is not { } context)
        {
            Abort(TlsAlert.InternalError);
            throw new AuthenticationException(
                $"OpenSSL refused the options that a callback chose ({reason}): check that the certificate fits its key and the cipher suites exist.");
        }

        _settings = settings;
        _certificate = settings.Certificate;
        _verifier = new PeerVerifier(_stream, settings, PublishProgress);
        _connection.SwitchContext(context);
        Staple();
    }

    /// <summary>A callback that looks at the stream in the midst of the handshake finds what is known by then.</summary>
    private void PublishProgress()
    {
        ConnectionInfo info = _connection.GetInfo();
        RuntimeInternals.Publish(
            _stream,
            TlsConnection.ToSslProtocols(info.ProtocolVersion),
            (TlsCipherSuite)info.CipherSuite,
            info.ApplicationProtocol,
            inHandshake: true);
        if (_settings.IsServer)
        {
            RuntimeInternals.PublishTargetHost(_stream, HandshakeOptions.PublishedServerName(NativeText.Decode(info.ServerName)));
        }
    }

    private void Staple()
    {
        if (_settings.IsServer && _certificate is not null && RuntimeInternals.OcspResponseOf(_certificate) is { } response)
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
                _verifier.JudgeResumed(chain, _offered.Verdict);
            }
            else
            {
                _verifier.JudgeAbsence();
            }

            _verifier.Refusal?.Throw();
        }

        if (_options.AllowTruncation == true)
        {
            _connection.AllowTruncation();
        }

        bool shown = _settings.IsServer || (info.Resumed != 0 ? _offered.ShowedCertificate : info.CertificateRequested != 0);
        TlsSession session = new(
            _socket,
            _connection,
            _receiver,
            _settings,
            shown ? _certificate?.TargetCertificate : null,
            _verifier,
            info,
            _options,
            Platform.Current);
        _handedOver = true;
        _transport.ApplyToKernel(_socket, info);
        return session;
    }
}
