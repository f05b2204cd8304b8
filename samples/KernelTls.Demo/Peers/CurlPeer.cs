namespace KernelTls.Demo.Peers;

/// <summary>Downloads with curl, an independent client.</summary>
internal sealed class CurlPeer : IPeer
{
    private readonly DemoCertificates _certificates;

    public CurlPeer(DemoCertificates certificates) => _certificates = certificates;

    public string Name => "curl";

    public async Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken)
    {
        string[] arguments =
        [
            // Must be first: ignores the user's configuration file.
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
