namespace KernelTls.AspNetCore;

/// <summary>
/// A connection feature that describes the data paths of a TLS connection. Read it with
/// <c>HttpContext.Features.Get&lt;IKtlsFeature&gt;()</c>.
/// </summary>
/// <remarks>
/// <para>
/// Requests over https have this feature, with three exceptions: kernel TLS is switched off for the whole server
/// (<see cref="KtlsFallbackReason.NotEnabled"/>, <see cref="KtlsFallbackReason.DisabledByMode"/>,
/// <see cref="KtlsFallbackReason.DisabledByToggle"/>), the UseHttps of the endpoint was not found
/// (<see cref="KtlsFallbackReason.EndpointNotFound"/>), or the request came over HTTP/3, which has no TLS records.
/// </para>
/// <para>
/// Connections have this feature for middleware behind UseHttps. If the platform has no kernel TLS, only requests have
/// it.
/// </para>
/// </remarks>
public interface IKtlsFeature
{
    /// <summary>Gets the data path of each direction and, if it is not the kernel, the reason.</summary>
    KtlsOffload Offload { get; }
}
