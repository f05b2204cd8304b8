using System.Runtime.InteropServices;
using KernelTls.AspNetCore.Internals;

namespace KernelTls.AspNetCore;

/// <summary>Decides once, when first asked, whether this package knows the running Kestrel.</summary>
/// <param name="findMissing">The function that describes the private member that is missing, or returns an empty string.</param>
/// <param name="findChange">The function that finds differences in behavior. Called only if nothing is missing.</param>
/// <param name="findChangeIn">The function that finds differences in the HTTPS middleware of an endpoint.</param>
internal sealed class KestrelSupport(Func<string> findMissing, Func<string> findChange, Func<KestrelHttpsMiddleware, string> findChangeIn)
{
    private volatile Lazy<(KtlsFallbackReason Reason, string Detail)> _found = new(() => Find(findMissing, findChange));

    /// <summary>Gets the result for the running Kestrel.</summary>
    public static KestrelSupport Current { get; } = new(static () => KestrelInternals.Missing, KestrelCanary.FindChange, KestrelCanary.FindChangeIn);

    /// <summary>Gets the reason why endpoints stay with Kestrel's HTTPS middleware, or None.</summary>
    public KtlsFallbackReason Reason => _found.Value.Reason;

    /// <summary>Gets the member that is missing or behaves differently, for the log, or an empty string.</summary>
    public string Detail => _found.Value.Detail;

    /// <summary>Checks the HTTPS middleware of an endpoint. A difference becomes the <see cref="Reason"/>, for this endpoint and later ones.</summary>
    public void Check(KestrelHttpsMiddleware https)
    {
        if (Reason == KtlsFallbackReason.None && findChangeIn(https) is { Length: > 0 } change)
        {
            _found = new Lazy<(KtlsFallbackReason, string)>(Changed(change));
        }
    }

    private static (KtlsFallbackReason Reason, string Detail) Find(Func<string> findMissing, Func<string> findChange)
    {
        if (findMissing() is { Length: > 0 } missing)
        {
            return (KtlsFallbackReason.KestrelNotSupported, $"{RuntimeInformation.FrameworkDescription} lacks a member of Kestrel: {missing}");
        }

        return findChange() is { Length: > 0 } change ? Changed(change) : (KtlsFallbackReason.None, "");
    }

    private static (KtlsFallbackReason Reason, string Detail) Changed(string change) =>
        (KtlsFallbackReason.KestrelChanged, $"{RuntimeInformation.FrameworkDescription}: {change}.");
}
