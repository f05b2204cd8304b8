namespace KernelTls.Tool.Benching;

/// <summary>What is compared.</summary>
internal enum BenchMode
{
    /// <summary>The stock SslStream.</summary>
    SslStream,

    /// <summary>KtlsStream, both ends in the kernel as far as it goes.</summary>
    Kernel,

    /// <summary>KtlsStream with OpenSSL on the socket: where there is no kernel TLS.</summary>
    OpenSsl,
}
