using System.Runtime.InteropServices;
using KernelTls.AspNetCore.Internals;

namespace KernelTls.AspNetCore;

/// <summary>Decides once, when first asked, whether this package knows the running Kestrel.</summary>
/// <param name="findMissing">The function that describes the private member that is missing, or returns an empty string.</param>
/// <param name="findChange">The function that finds differences in behavior. Called only if nothing is missing.</param>
internal sealed class KestrelSupport(Func<string> findMissing, Func<string> findChange)
{
    private readonly Lazy<(KtlsFallbackReason Reason, string Detail)> _found = new(() => Find(findMissing, findChange));

    /// <summary>Gets the result for the running Kestrel.</summary>
    public static KestrelSupport Current { get; } = new(static () => KestrelInternals.Missing, KestrelCanary.FindChange);

    /// <summary>Gets the reason why endpoints stay with Kestrel's HTTPS middleware, or None.</summary>
    public KtlsFallbackReason Reason => _found.Value.Reason;

    /// <summary>Gets the member that is missing or behaves differently, for the log, or an empty string.</summary>
    public string Detail => _found.Value.Detail;

    private static (KtlsFallbackReason Reason, string Detail) Find(Func<string> findMissing, Func<string> findChange)
    {
        string version = RuntimeInformation.FrameworkDescription;
        if (findMissing() is { Length: > 0 } missing)
        {
            return (KtlsFallbackReason.KestrelNotSupported, $"{version} lacks a member of Kestrel: {missing}");
        }

        return findChange() is { Length: > 0 } change ? (KtlsFallbackReason.KestrelChanged, $"{version}: {change}.") : (KtlsFallbackReason.None, "");
    }
}
