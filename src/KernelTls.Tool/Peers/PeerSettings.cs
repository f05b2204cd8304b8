using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Whom to talk to and whom to trust.</summary>
/// <param name="Address">Where the peer is.</param>
/// <param name="ServerName">The name in ClientHello and certificate.</param>
/// <param name="Authorities">Who is trusted; <see langword="null"/>: whom this machine trusts.</param>
/// <param name="Insecure">Go on with a certificate that is not trusted.</param>
/// <param name="Versions">What to offer.</param>
/// <param name="Timeout">For the connection, and for the handshake.</param>
internal sealed record PeerSettings(
    PeerAddress Address,
    string ServerName,
    X509Certificate2Collection? Authorities,
    bool Insecure,
    SslProtocols Versions,
    TimeSpan Timeout)
{
    /// <summary>The options of every connection to this peer: equal ones, so that sessions can be resumed.</summary>
    /// <param name="judge">Hears about the certificate.</param>
    /// <param name="protocols">What ALPN offers.</param>
    public SslClientAuthenticationOptions NewOptions(CertificateJudge judge, params SslApplicationProtocol[] protocols)
    {
        SslClientAuthenticationOptions options = new()
        {
            TargetHost = ServerName,
            EnabledSslProtocols = Versions,
            RemoteCertificateValidationCallback = judge.Validate,
            ApplicationProtocols = protocols.Length == 0 ? null : [.. protocols],
            CertificateRevocationCheckMode = X509RevocationMode.NoCheck,
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

    /// <summary>A TCP connection to the peer.</summary>
    /// <exception cref="ToolFailedException">There is none to be had.</exception>
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
                ExitCode.Unreachable, $"{Address} cannot be reached: {e.Message} ({e.SocketErrorCode}). Is the name right, and does the server listen there?", e);
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

    /// <summary>Shakes hands; what fails says why.</summary>
    /// <param name="handshake">Gets a token that ends with the time limit.</param>
    /// <param name="judge">Knows whether the certificate was the reason.</param>
    /// <param name="scanner">Has seen what the peer said, where somebody listened.</param>
    /// <param name="cancellationToken">Ends the command.</param>
    /// <exception cref="ToolFailedException">No handshake came about.</exception>
    public async Task ShakeHandsAsync(
        Func<CancellationToken, Task> handshake, CertificateJudge judge, RecordScanner? scanner, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(Timeout);
        try
        {
            await handshake(limit.Token);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            string heard = scanner is { Total: 0 } ? ", and the peer has said nothing: does it speak TLS?" : ".";
            throw new ToolFailedException(ExitCode.NoHandshake, $"No handshake with {Address} in {Timeout.TotalSeconds} s (--timeout){heard}");
        }
        catch (Exception e) when (e is AuthenticationException or IOException or SocketException)
        {
            cancellationToken.ThrowIfCancellationRequested();
            throw Explain(e, judge, scanner);
        }
    }

    private ToolFailedException Explain(Exception failure, CertificateJudge judge, RecordScanner? scanner)
    {
        if (judge.Refusal is { } refusal)
        {
            return new ToolFailedException(
                ExitCode.NotTrusted,
                $"The certificate of {Address} is not trusted: {refusal}. Expected one for '{ServerName}' from an authority that is trusted here; --ca FILE trusts another one, --server-name NAME expects another name, --insecure goes on.",
                failure);
        }

        if (failure is KtlsNotAvailableException { Reason: var reason })
        {
            return new ToolFailedException(
                ExitCode.NoHandshake, $"{Address} was reached, and kernel TLS, which was required, is not to be had. {Advice.Named(reason)}", failure);
        }

        string words = Describe(failure);
        bool notTls = scanner is { IsTls: false } || words.Contains("wrong version number", StringComparison.OrdinalIgnoreCase);
        return new ToolFailedException(
            ExitCode.NoHandshake,
            notTls ? $"{Address} does not speak TLS{(scanner is null ? "" : $": it says {scanner.FirstBytes}")}. Is the port right?"
                : scanner is { Total: 0 } ? $"{Address} closed the connection without a word of TLS. Is the port right? ({words})"
                : $"The handshake with {Address} failed: {words}",
            failure);
    }

    /// <summary>The exception's message and what is underneath.</summary>
    public static string Describe(Exception failure) => failure.InnerException is { } inner && inner.Message != failure.Message
        ? $"{failure.Message} ({Describe(inner)})"
        : failure.Message;
}
