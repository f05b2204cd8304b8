namespace KernelTls.Bench.Scenarios;

/// <summary>What HttpClient asks and Kestrel answers.</summary>
/// <param name="Version">Of HTTP.</param>
internal sealed record HttpExchangeKind(Version Version)
{
    /// <summary>Bytes of the request's body; 0: it is a GET.</summary>
    public int RequestSize { get; init; }

    public int ResponseSize { get; init; }

    /// <summary>The response's body is a file.</summary>
    public bool IsFile { get; init; }

    /// <summary>Each request has a connection of its own.</summary>
    public bool Closes { get; init; }
}
