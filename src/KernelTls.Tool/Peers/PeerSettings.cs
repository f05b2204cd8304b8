using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Contains the peer and the trusted certificates.</summary>
/// <param name="Address">The address of the peer.</param>
/// <param name="ServerName">The name in the ClientHello and the certificate.</param>
/// <param name="Authorities">
/// The trusted certificates, or <see langword="null"/> for those that this machine trusts.
/// </param>
/// <param name="Insecure">Whether to accept a certificate that is not trusted.</param>
/// <param name="Versions">The versions to offer.</param>
/// <param name="Timeout">The time limit for the connection, and for the handshake.</param>
/// <param name="Certificate">This end's certificate, or <see langword="null"/> for none.</param>
internal sealed record PeerSettings(
    PeerAddress Address,
    string ServerName,
    X509Certificate2Collection? Authorities,
    bool Insecure,
    SslProtocols Versions,
    TimeSpan Timeout,
    SslStreamCertificateContext? Certificate)
{
    /// <summary>
    /// Returns the options of a connection to this peer. They are equal each time, so that sessions can be resumed.
    /// </summary>
    /// <param name="validator">The object that validates the certificate.</param>
    /// <param name="protocols">The ALPN protocols to offer.</param>
    public SslClientAuthenticationOptions NewOptions(CertificateValidator validator, params SslApplicationProtocol[] protocols)
    {
        SslClientAuthenticationOptions options = new()
        {
            TargetHost = ServerName,
            EnabledSslProtocols = Versions,
            RemoteCertificateValidationCallback = validator.Validate,
            ApplicationProtocols = protocols.Length == 0 ? null : [.. protocols],
            CertificateRevocationCheckMode = X509RevocationMode.NoCheck,
            ClientCertificateContext = Certificate,
        };
        if (Authorities is not null)
        {
            options.CertificateChainPolicy = new X509ChainPolicy
            {
                TrustMode = X509ChainTrustMode.CustomRootTrust,
                RevocationMode = X509RevocationMode.NoCheck,
                DisableCertificateDownloads = true,
            };
            options.CertificateChainPolicy.CustomTrustStore.AddRange(Authorities);
        }

        return options;
    }

    /// <summary>Opens a TCP connection to the peer.</summary>
    /// <exception cref="ToolFailedException">The connection failed.</exception>
    public async Task<Socket> ConnectAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(Timeout);
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(Address.Host, Address.Port, limit.Token);
            return socket;
        }
        catch (SocketException e)
        {
            socket.Dispose();
            throw new ToolFailedException(
                ExitCode.Unreachable, $"{Address} cannot be reached: {e.Message} ({e.SocketErrorCode}). Check the name, and that the server listens on this port.", e);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            socket.Dispose();
            throw new ToolFailedException(
                ExitCode.Unreachable, $"{Address} cannot be reached: no answer in {Timeout.TotalSeconds} s (--timeout). A firewall may drop the packets.");
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    /// <summary>Performs the handshake, and explains failures.</summary>
    /// <param name="handshake">The handshake. Its token is canceled by the time limit.</param>
    /// <param name="validator">The object that has validated the certificate.</param>
    /// <param name="scanner">The scanner of the peer's data, or null.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <exception cref="ToolFailedException">The handshake failed.</exception>
    public async Task PerformHandshakeAsync(
        Func<CancellationToken, Task> handshake, CertificateValidator validator, RecordScanner? scanner, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(Timeout);
        try
        {
            await handshake(limit.Token);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            string heard = scanner is { Total: 0 } ? ", and the peer has sent nothing. Check that it uses TLS." : ".";
            throw new ToolFailedException(ExitCode.NoHandshake, $"No handshake with {Address} in {Timeout.TotalSeconds} s (--timeout){heard}");
        }
        catch (Exception e) when (e is AuthenticationException or IOException or SocketException)
        {
            cancellationToken.ThrowIfCancellationRequested();
            throw Explain(e, validator, scanner);
        }
    }

    private ToolFailedException Explain(Exception failure, CertificateValidator validator, RecordScanner? scanner)
    {
        if (validator.Refusal is { } refusal)
        {
            return new ToolFailedException(
                ExitCode.NotTrusted,
                $"The certificate of {Address} is not trusted: {refusal}. Expected one for '{ServerName}' from an authority that is trusted here. Use --ca FILE to trust another one, --server-name NAME to expect another name, or --insecure to continue.",
                failure);
        }

        if (failure is KtlsNotAvailableException { Reason: var reason })
        {
            return new ToolFailedException(
                ExitCode.No, $"{Address} was reached, but kernel TLS, which --mode required asks for, is not available. {Advice.Named(reason)}", failure);
        }

        string words = Describe(failure);
        string? alert = PeerAlert.Find(words);
        if (PeerAlert.IsAboutCertificate(alert) || (alert is not null && validator.IsCertificateRequested))
        {
            return Refused(alert!, "in the handshake", failure);
        }

        bool notTls = scanner is { IsTls: false } || words.Contains("wrong version number", StringComparison.OrdinalIgnoreCase);
        return new ToolFailedException(
            ExitCode.NoHandshake,
            notTls ? $"{Address} does not use TLS{(scanner is null ? "" : $": it sent {scanner.FirstBytes}")}. Check the port."
                : scanner is { Total: 0 } ? $"{Address} closed the connection before it sent any TLS data. Check the port. ({words})"
                : $"The handshake with {Address} failed: {words}{(alert == "handshake_failure" ? " The peer accepts no version or suite that was offered, or requires a client certificate (--certificate)." : "")}",
            failure);
    }

    /// <summary>Returns the end of a command whose peer sent an alert after the handshake, or <see langword="null"/> if it did not.</summary>
    /// <param name="words">The messages of the failure.</param>
    public ToolFailedException? Refusal(string words) =>
        PeerAlert.Find(words) is { } alert ? Refused(alert, "after the handshake", failure: null) : null;

    private ToolFailedException Refused(string alert, string when, Exception? failure)
    {
        string toDo = !PeerAlert.IsAboutCertificate(alert) && alert != "handshake_failure" ? "Its log says why."
            : Certificate is { TargetCertificate.Subject: var subject } ? $"It does not accept the certificate {subject}; its log says why."
            : "It requires a client certificate: specify one with --certificate FILE and --key FILE.";
        return new ToolFailedException(ExitCode.Refused, $"{Address} refused this client {when} with the alert {alert}. {toDo}", failure);
    }

    /// <summary>Returns the messages of the exception and its inner exceptions.</summary>
    public static string Describe(Exception failure) => failure.InnerException is { } inner && inner.Message != failure.Message
        ? $"{failure.Message} ({Describe(inner)})"
        : failure.Message;
}
