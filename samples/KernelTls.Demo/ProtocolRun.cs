using System.Security.Authentication;
using KernelTls.Demo.Peers;

namespace KernelTls.Demo;

/// <summary>Runs one TLS version: a server, one download by each peer, and the kernel's counters before and after.</summary>
internal sealed class ProtocolRun
{
    /// <summary>The number of downloads: one by each peer.</summary>
    public const int Downloads = 3;

    private readonly PublishedFile _file;
    private readonly DemoCertificates _certificates;
    private readonly Expectation _expectation;
    private readonly TextWriter _output;

    public ProtocolRun(PublishedFile file, DemoCertificates certificates, Expectation expectation, TextWriter output)
    {
        _file = file;
        _certificates = certificates;
        _expectation = expectation;
        _output = output;
    }

    /// <summary>Runs the downloads. Returns the ends of every connection that use this library.</summary>
    /// <exception cref="DemoFailedException">A download, a data path or a counter is not as expected.</exception>
    public async Task<IReadOnlyList<ConnectionFacts>> RunAsync(SslProtocols protocol, CancellationToken cancellationToken)
    {
        List<ConnectionFacts> ends = [];
        KernelCounters before = KernelCounters.Read();
        _output.WriteLine();
        _output.WriteLine($"{ConnectionFacts.NameOf(protocol)}: kernel counters before: {before}");
        await using (FileServer server = await FileServer.StartAsync(_file, _certificates, protocol, cancellationToken))
        {
            IPeer[] peers =
            [
                new HttpClientPeer(protocol, _certificates),
                new CurlPeer(_certificates),
                new OpenSslPeer(_certificates),
            ];
            for (int i = 0; i < peers.Length; i++)
            {
                await DownloadAsync(peers[i], server, ends, cancellationToken);
                if (server.Connections is not { } connections || connections.Count != i + 1)
                {
                    throw new DemoFailedException(
                        $"the server has seen {server.Connections.Count} connections where {i + 1} were made");
                }

                Add(connections[i], ends);
            }

            // The counters are read after the server has ended every connection, too.
            await server.StopAsync(cancellationToken);
        }

        KernelCounters after = KernelCounters.Read();
        _output.WriteLine($"{ConnectionFacts.NameOf(protocol)}: kernel counters after: {after.ToString(before)}");
        foreach (ConnectionFacts end in ends)
        {
            _expectation.Check(end);
        }

        _expectation.Check(ends, before, after);
        return ends;
    }

    private async Task DownloadAsync(
        IPeer peer, FileServer server, List<ConnectionFacts> ends, CancellationToken cancellationToken)
    {
        ProgressLine progress = new(_output, peer.Name, _file.Length);
        using ReceivedFile received = new(_file, progress);
        ConnectionFacts? client;
        try
        {
            client = await peer.DownloadAsync(server.Address, received, cancellationToken);
        }
        finally
        {
            progress.Clear();
        }

        _output.WriteLine($"  {peer.Name}: {received.Verify(peer.Name)}");
        if (client is not null)
        {
            Add(client, ends);
        }
    }

    private void Add(ConnectionFacts end, List<ConnectionFacts> ends)
    {
        _output.WriteLine($"    {end}");
        ends.Add(end);
    }
}
