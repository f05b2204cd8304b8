using System.Security.Cryptography.X509Certificates;

namespace KernelTls.ConformanceTests;

/// <summary>Describes what an <see cref="OpenSslPeer"/> supports.</summary>
internal sealed record OpenSslPeerOptions
{
    private const int Tls12 = 0x303;
    private const int Tls13 = 0x304;

    /// <summary>Gets the versions, which 0 leaves to OpenSSL.</summary>
    public int MinVersion { get; init; } = Tls12;

    public int MaxVersion { get; init; } = Tls13;

    public X509Certificate2? Certificate { get; init; }

    /// <summary>Gets a value that indicates whether a server requests the client's certificate.</summary>
    public bool AsksForCertificate { get; init; }

    /// <summary>Gets a value that indicates whether a client requests a stapled OCSP response.</summary>
    public bool AsksForStatus { get; init; }

    public string? Groups { get; init; }

    public string? CipherList { get; init; }

    /// <summary>Gets the protocols that a client offers; a server that has any chooses the client's first.</summary>
    public string[] Protocols { get; init; } = [];

    /// <summary>Gets the server name that a client sends, or <see langword="null"/> for none.</summary>
    public string? ServerName { get; init; } = "localhost";
}
