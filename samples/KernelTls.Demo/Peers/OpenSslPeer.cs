namespace KernelTls.Demo.Peers;

/// <summary>Downloads with openssl s_client, which implements TLS but not HTTP. This class writes the request and splits the response.</summary>
internal sealed class OpenSslPeer : IPeer
{
    private readonly DemoCertificates _certificates;

    public OpenSslPeer(DemoCertificates certificates) => _certificates = certificates;

    public string Name => "openssl s_client";

    public async Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken)
    {
        string[] arguments =
        [
            "s_client", "-quiet",
            "-connect", address.Authority,
            "-servername", address.Host,
            "-verify_hostname", address.Host,
            "-verify_return_error",
            "-CAfile", _certificates.AuthorityFile,

            // The stock TLS of Kestrel ends without close_notify. Length and hash show whether the download is complete.
            "-ignore_unexpected_eof",
        ];
        string request = $"GET {address.AbsolutePath} HTTP/1.1\r\nHost: {address.Authority}\r\nConnection: close\r\n\r\n";
        ResponseSplitter response = new(received);
        await new ExternalProgram("openssl", arguments).RunAsync(request, data => response.Append(data.Span), cancellationToken);
        if (response.StatusLine is not "HTTP/1.1 200 OK")
        {
            throw new DemoFailedException($"{Name}: the server answered '{response.StatusLine}'");
        }

        return null;
    }
}
