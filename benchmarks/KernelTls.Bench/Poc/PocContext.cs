using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Bench.Poc;

/// <summary>
/// Creates the streams of the proof of concept. It holds one SSL_CTX for each role and the client's session for the
/// next connection.
/// </summary>
internal sealed class PocContext
{
    private const int ControlServerName = 55;

    /// <summary>
    /// Gets the protocols in the format of the ALPN extension (RFC 7301, section 3.1). The server selects the protocol
    /// that it serves.
    /// </summary>
    private static ReadOnlySpan<byte> HttpProtocols => "\u0002h2\u0008http/1.1"u8;

    private readonly BenchCertificates _certificates;
    private readonly bool _resume;
    private readonly nint _client;
    private readonly nint _server;
    private nint _session;

    public PocContext(BenchCertificates certificates, bool resume)
    {
        _certificates = certificates;
        _resume = resume;
        _client = Create(resume);
        _server = Create(resume);
        using ECDsa key = certificates.Server.GetECDsaPrivateKey()!;
        using SafeEvpPKeyHandle handle = ((ECDsaOpenSsl)key).DuplicateKeyHandle();
        if (LibSsl.SSL_CTX_use_certificate(_server, certificates.Server.Handle) != 1
            || LibSsl.SSL_CTX_use_PrivateKey(_server, handle.DangerousGetHandle()) != 1)
        {
            throw new BenchFailedException("poc: OpenSSL refuses the certificate");
        }
    }

    public async Task<Stream> ConnectAsync(Socket socket, bool isHttp = false)
    {
        PocStream stream = new(socket, Bind(_client, socket)) { IsClient = true };
        LibSsl.SSL_set_connect_state(stream.Ssl);
        if (isHttp)
        {
            OfferHttp(stream.Ssl);
        }

        _ = LibSsl.SSL_ctrl(stream.Ssl, ControlServerName, 0, BenchCertificates.Host);
        if (_session != 0)
        {
            _ = LibSsl.SSL_set_session(stream.Ssl, _session);
        }

        await stream.ShakeHandsAsync();
        Judge(stream.Ssl);
        return stream;
    }

    public async Task<Stream> AcceptAsync(Socket socket)
    {
        PocStream stream = new(socket, Bind(_server, socket));
        LibSsl.SSL_set_accept_state(stream.Ssl);
        await stream.ShakeHandsAsync();
        return stream;
    }

    /// <summary>Keeps the session of the tickets that the client has read.</summary>
    public void KeepSession(PocStream stream)
    {
        if (_resume && stream.IsClient)
        {
            nint older = _session;
            _session = LibSsl.SSL_get1_session(stream.Ssl);
            LibSsl.SSL_SESSION_free(older);
        }
    }

    private static nint Create(bool resume)
    {
        nint context = LibSsl.SSL_CTX_new(LibSsl.TLS_method());
        _ = LibSsl.SSL_CTX_set_options(context, LibSsl.OptionEnableKtls | (resume ? 0 : LibSsl.OptionNoTicket));
        _ = LibSsl.SSL_CTX_ctrl(context, LibSsl.ControlMinProtocol, LibSsl.Tls13, 0);
        _ = LibSsl.SSL_CTX_ctrl(context, LibSsl.ControlMode, LibSsl.ModeReleaseBuffers | LibSsl.ModeAcceptMovingWriteBuffer, 0);
        if (!resume)
        {
            _ = LibSsl.SSL_CTX_ctrl(context, LibSsl.ControlSessionCacheMode, 0, 0);
            _ = LibSsl.SSL_CTX_set_num_tickets(context, 0);
        }

        return context;
    }

    private static unsafe void OfferHttp(nint ssl)
    {
        fixed (byte* protocols = HttpProtocols)
        {
            _ = LibSsl.SSL_set_alpn_protos(ssl, protocols, (uint)HttpProtocols.Length);
        }
    }

    private static nint Bind(nint context, Socket socket)
    {
        socket.Blocking = false;
        nint ssl = LibSsl.SSL_new(context);
        _ = LibSsl.SSL_set_fd(ssl, (int)socket.Handle);
        return ssl;
    }

    /// <summary>Validates the server's certificate after the handshake, as the stock stream does.</summary>
    private void Judge(nint ssl)
    {
        nint handle = LibSsl.SSL_get1_peer_certificate(ssl);
        using X509Certificate2 certificate = new(handle);
        LibSsl.X509_free(handle);
        using X509Chain chain = new();
        chain.ChainPolicy = _certificates.CreateTrust();
        chain.ChainPolicy.ApplicationPolicy.Add(new Oid("1.3.6.1.5.5.7.3.1"));
        if (!chain.Build(certificate) || !certificate.MatchesHostname(BenchCertificates.Host))
        {
            throw new AuthenticationException("poc: the server's certificate is not trusted");
        }
    }
}
