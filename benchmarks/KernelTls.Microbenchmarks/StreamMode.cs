using System.Net.Security;

namespace KernelTls.Microbenchmarks;

/// <summary>Who does the work.</summary>
public enum StreamMode
{
    /// <summary>SslStream itself.</summary>
    Stock,

    /// <summary>OpenSSL on the socket, without the kernel.</summary>
    DirectOpenSsl,

    /// <summary>The kernel, both ways.</summary>
    Kernel,
}

internal static class StreamModes
{
    /// <summary>Those that there are here.</summary>
    public static IEnumerable<StreamMode> Available => Enum.GetValues<StreamMode>().Where(m => m != StreamMode.Kernel || KtlsPlatform.IsSupported);

    public static SslStream Create(this StreamMode mode, Stream transport) => mode switch
    {
        StreamMode.Stock => new SslStream(transport),
        StreamMode.DirectOpenSsl => new KtlsStream(
            transport, leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Disabled, DirectOpenSsl = true }),
        _ => new KtlsStream(transport, leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Required }),
    };
}
