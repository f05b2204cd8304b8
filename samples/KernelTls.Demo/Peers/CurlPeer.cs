namespace KernelTls.Demo.Peers;

/// <summary>curl: a client that nobody here wrote.</summary>
internal sealed class CurlPeer : IPeer
{
    private readonly DemoCertificates _certificates;

    public CurlPeer(DemoCertificates certificates) => _certificates = certificates;

    public string Name => "curl";

    public async Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken)
    {
        string[] arguments =
        [
            // First: no configuration file of the user.
            "--disable",
            "--silent", "--show-error", "--fail",
            "--noproxy", "*",
            "--cacert", _certificates.AuthorityFile,
            address.AbsoluteUri,
        ];
        await new ExternalProgram("curl", arguments).RunAsync("", data => received.Append(data.Span), cancellationToken);
        return null;
    }
}
