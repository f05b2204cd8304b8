namespace KernelTls.Tool.Readers;

/// <summary>Describes a known fault of the kernel's TLS by the versions that have it.</summary>
/// <param name="Id">The number of the CVE.</param>
/// <param name="Since">
/// The first version with the fault, and the first one in each older series that got the fault with a correction, in ascending order.
/// </param>
/// <param name="Fixed">The first version without the fault, and the first one in each older series that was corrected, in ascending order.</param>
internal sealed record KernelFault(string Id, IReadOnlyList<KernelVersion> Since, IReadOnlyList<KernelVersion> Fixed)
{
    /// <summary>Returns whether a kernel of a version has the fault, unless its distribution has corrected it.</summary>
    public bool IsIn(KernelVersion version) => IsReached(Since, version) && !IsReached(Fixed, version);

    private static bool IsReached(IReadOnlyList<KernelVersion> versions, KernelVersion version) =>
        version >= versions[^1] || versions.Any(v => v.IsInSeriesOf(version) && version >= v);
}
