namespace KernelTls.Tool.Readers;

/// <summary>Lists the known faults of the kernel's TLS. docs/security.md has the same table, and what each one does.</summary>
/// <remarks>
/// The versions are those of the CVE records of the kernel's maintainers. For the series 6.1 and 6.12, which Debian follows, its changelogs of
/// 6.1.192 and 6.12.117 name further corrections.
/// </remarks>
internal static class KernelFaults
{
    /// <summary>The fault that the library looks for when it starts, on connections to itself.</summary>
    public const string Padding = "CVE-2026-74611";

    /// <summary>Gets the faults, the newest first.</summary>
    public static IReadOnlyList<KernelFault> All { get; } =
    [
        Fault("CVE-2026-93824", "4.13", "6.1.189 6.12.111 6.18.53 7.2"),
        Fault(Padding, "6.0", "6.1.191 6.12.114 6.18.45 7.1.9 7.2"),
        Fault("CVE-2026-64047", "5.4.14 5.5", "5.10.258 5.15.209 6.1.175 6.6.142 6.12.92 6.18.34 7.0.11 7.1"),
        Fault("CVE-2026-64046", "5.5", "5.10.258 5.15.209 6.1.175 6.6.142 6.12.92 6.18.34 7.0.11 7.1"),
        Fault("CVE-2026-64025", "5.10", "6.1.191 6.6.142 6.12.92 6.18.34 7.0.11 7.1"),
        Fault("CVE-2026-63830", "4.20", "5.10.261 5.15.212 6.1.177 6.6.144 6.12.95 6.18.38 7.1.3 7.2-rc1"),
        Fault("CVE-2026-31533", "5.15.160 6.1.84 6.6.18 6.7.6 6.8", "5.15.203 6.1.169 6.6.135 6.12.82 6.18.23 6.19.13 7.0"),
        Fault("CVE-2026-23240", "5.3", "6.12.75 6.18.16 6.19.6 7.0-rc2"),
        Fault("CVE-2025-38616", "6.0", "6.1.185 6.6.103 6.12.43 6.15.11 6.16.2 6.17"),
        Fault("CVE-2025-37756", "4.13", "5.10.237 5.15.181 6.1.135 6.6.88 6.12.24 6.13.12 6.14.3 6.15-rc2"),
    ];

    /// <summary>Returns the faults that a kernel has by its version, or null if its release does not begin with a version.</summary>
    /// <param name="release">The release, as printed by <c>uname -r</c>.</param>
    /// <param name="expectsNoPadding">Whether a trial found that the kernel does not have <see cref="Padding"/>.</param>
    public static IReadOnlyList<string>? In(string release, bool expectsNoPadding) => KernelVersion.Parse(release) is { } version
        ? [.. All.Where(f => f.IsIn(version) && !(expectsNoPadding && f.Id == Padding)).Select(f => f.Id)]
        : null;

    private static KernelFault Fault(string id, string since, string corrected) => new(id, Versions(since), Versions(corrected));

    private static KernelVersion[] Versions(string versions) => [.. versions.Split(' ').Select(v => KernelVersion.Parse(v)!.Value)];
}
