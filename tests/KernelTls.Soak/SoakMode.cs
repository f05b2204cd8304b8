namespace KernelTls.Soak;

/// <summary>Specifies the component that encrypts, at both ends.</summary>
internal enum SoakMode
{
    /// <summary>The kernel.</summary>
    Kernel,

    /// <summary>OpenSSL on the socket.</summary>
    OpenSsl,

    /// <summary>The stock SslStream, to compare the others with.</summary>
    Stock,
}
