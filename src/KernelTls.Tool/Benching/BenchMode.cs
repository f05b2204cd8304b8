namespace KernelTls.Tool.Benching;

/// <summary>Specifies the streams to compare.</summary>
internal enum BenchMode
{
    /// <summary>The stock SslStream.</summary>
    SslStream,

    /// <summary>KtlsStream, with both ends in the kernel as far as possible.</summary>
    Kernel,

    /// <summary>KtlsStream with OpenSSL on the socket, if kernel TLS is not available.</summary>
    OpenSsl,
}
