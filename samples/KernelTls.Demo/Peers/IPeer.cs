namespace KernelTls.Demo.Peers;

/// <summary>Represents a client that downloads the file once, over a new connection.</summary>
internal interface IPeer
{
    string Name { get; }

    /// <summary>Downloads into <paramref name="received"/> and validates the server's certificate.</summary>
    /// <returns>The client's end if it uses this library; otherwise <see langword="null"/>.</returns>
    /// <exception cref="DemoFailedException">The peer reports a failure.</exception>
    Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken);
}
