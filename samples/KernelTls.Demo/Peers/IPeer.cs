namespace KernelTls.Demo.Peers;

/// <summary>A client that downloads the file once, over a connection of its own.</summary>
internal interface IPeer
{
    string Name { get; }

    /// <summary>Downloads into <paramref name="received"/>, validating the server's certificate.</summary>
    /// <returns>The client's own end, where it is this library's; else <see langword="null"/>.</returns>
    /// <exception cref="DemoFailedException">The peer reports a failure.</exception>
    Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken);
}
