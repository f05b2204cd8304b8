namespace KernelTls.Bench.Scenarios;

/// <summary>Describes the requests of HttpClient and the responses of Kestrel.</summary>
/// <param name="Version">The version of HTTP.</param>
internal sealed record HttpExchangeKind(Version Version)
{
    /// <summary>Gets the size of the request's body in bytes. If it is 0, the request is a GET.</summary>
    public int RequestSize { get; init; }

    public int ResponseSize { get; init; }

    /// <summary>Gets a value that indicates whether the response's body is a file.</summary>
    public bool IsFile { get; init; }

    /// <summary>Gets a value that indicates whether each request uses a new connection.</summary>
    public bool Closes { get; init; }

    /// <summary>
    /// Gets a value that indicates whether the exchange is a unary gRPC call with messages of the two sizes.
    /// </summary>
    public bool IsGrpc { get; init; }

    /// <summary>Gets the number of requests in progress at any time.</summary>
    public int Concurrency { get; init; } = 1;
}
