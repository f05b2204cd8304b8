namespace KernelTls.Tests;

/// <summary>Specifies the implementation under test.</summary>
public enum TlsMode
{
    /// <summary>SslStream itself.</summary>
    Stock,

    /// <summary>KtlsStream with <see cref="KtlsMode.Disabled"/>.</summary>
    Managed,

    /// <summary>KtlsStream with OpenSSL on the socket, without the kernel.</summary>
    DirectOpenSsl,

    /// <summary>KtlsStream with <see cref="KtlsMode.Preferred"/>, on a kernel that has TLS.</summary>
    Kernel,
}
