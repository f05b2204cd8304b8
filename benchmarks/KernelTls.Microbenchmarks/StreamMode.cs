using System.Net.Security;

namespace KernelTls.Microbenchmarks;

/// <summary>Specifies the component that performs TLS.</summary>
public enum StreamMode
{
    /// <summary>The stock SslStream.</summary>
    Stock,

    /// <summary>OpenSSL on the socket, without kernel TLS.</summary>
    DirectOpenSsl,

    /// <summary>Kernel TLS in both directions.</summary>
    Kernel,
}

internal static class StreamModes
{
    /// <summary>Gets the modes that this machine supports.</summary>
    public static IEnumerable<StreamMode> Available => Enum.GetValues<StreamMode>().Where(m => m != StreamMode.Kernel || KtlsPlatform.Probe().IsSupported);

    public static SslStream Create(this StreamMode mode, Stream transport) => mode switch
    {
        StreamMode.Stock => new SslStream(transport),
        StreamMode.DirectOpenSsl => new KtlsStream(
            transport, leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl }),
        _ => new KtlsStream(transport, leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Required }),
    };
}
