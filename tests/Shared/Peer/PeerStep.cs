namespace KernelTls.Tests;

/// <summary>Describes a record that a <see cref="TlsPeer"/> is about to send in its handshake.</summary>
/// <param name="Name">The RFC's name of the message in it.</param>
/// <param name="Type">The content type.</param>
/// <param name="Content">The content, one complete message.</param>
internal sealed record PeerStep(string Name, byte Type, byte[] Content)
{
    /// <summary>Returns the names of a handshake's steps in order.</summary>
    public static IReadOnlyList<string> All(bool isServer, bool tls13) => (isServer, tls13) switch
    {
        (true, true) => ["HelloRetryRequest", "ServerHello", "ChangeCipherSpec", "EncryptedExtensions", "Certificate", "CertificateVerify", "Finished"],
        (true, false) => ["ServerHello", "Certificate", "ServerKeyExchange", "ServerHelloDone", "ChangeCipherSpec", "Finished"],
        (false, true) => ["ClientHello", "ChangeCipherSpec", "Finished"],
        (false, false) => ["ClientHello", "ClientKeyExchange", "ChangeCipherSpec", "Finished"],
    };
}

/// <summary>Specifies how to handle a <see cref="PeerStep"/>.</summary>
internal enum PeerChoice
{
    /// <summary>The peer sends it and continues.</summary>
    Send,

    /// <summary>The peer continues as if it had sent it.</summary>
    Skip,

    /// <summary>The peer ends the handshake.</summary>
    Stop,
}
