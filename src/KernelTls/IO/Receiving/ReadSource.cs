namespace KernelTls.IO;

/// <summary>Specifies where the next bytes come from, after the buffered ones.</summary>
internal enum ReadSource
{
    /// <summary>Nothing has arrived. The reader must wait for the socket.</summary>
    Wait,

    /// <summary>A receive that does not wait. Only if the kernel decrypts.</summary>
    Socket,

    /// <summary>SSL_read: OpenSSL decrypts, holds data, or must read the next record.</summary>
    OpenSsl,

    /// <summary>SSL_read, after the send buffer has room for a record that OpenSSL must send first.</summary>
    OpenSslWhenWritable,

    /// <summary>SSL_read, after OpenSSL has answered the peer's CertificateRequest.</summary>
    OpenSslAfterCertificate,

    /// <summary>None: close_notify was received.</summary>
    Ended,
}
