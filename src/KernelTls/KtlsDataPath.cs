namespace KernelTls;

/// <summary>
/// Specifies the component that encrypts or decrypts the application data of one direction of a connection.
/// </summary>
public enum KtlsDataPath
{
    /// <summary>The stock <see cref="System.Net.Security.SslStream"/> implementation.</summary>
    Managed = 0,

    /// <summary>OpenSSL in this process, reading from and writing to the socket itself.</summary>
    OpenSsl = 1,

    /// <summary>The Linux kernel in software (<c>TLS_SW</c>).</summary>
    Kernel = 2,

    /// <summary>The network device (<c>TLS_HW</c>), as reported by the kernel.</summary>
    Hardware = 3,
}
