using System.Security.Authentication;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Commands;

/// <summary>
/// Contains the output of <c>ktls info</c>. This is the layout of the JSON document, which docs/troubleshooting.md
/// describes.
/// </summary>
internal sealed record InfoReport(
    string Verdict,
    bool Supported,
    KtlsFallbackReason Reason,
    string Detail,
    string Advice,
    InfoReport.ToggleState Toggle,
    InfoReport.ToggleState DirectOpenSsl,
    InfoReport.RuntimeState Runtime,
    InfoReport.KernelState Kernel,
    TlsModule Module,
    InfoReport.OpenSslState OpenSsl,
    IReadOnlyList<InfoReport.Capability> Capabilities,
    bool CanRekey,
    bool CanExpectNoPadding,
    bool CanZeroCopySendFile,
    IReadOnlyList<NetworkDevice> Devices,
    InfoReport.BusyPollState BusyPoll,
    IReadOnlyDictionary<string, long>? Counters)
{
    /// <summary>Describes a switch.</summary>
    /// <param name="State">On, Off, Unset or Invalid: the effect of this environment on KtlsMode.Environment or KtlsFallback.Environment.</param>
    /// <param name="Source">The variable or AppContext switch that decides, with its value, or an empty string.</param>
    internal sealed record ToggleState(string State, string Source);

    /// <summary>Describes the .NET runtime.</summary>
    /// <param name="Version">The version of the .NET runtime that runs this tool.</param>
    /// <param name="Description">The runtime's description of itself.</param>
    /// <param name="Missing">
    /// The private members that KernelTls uses and this runtime lacks, or an empty string.
    /// </param>
    /// <param name="Changed">
    /// The differences that a trial of those members found; empty if there are none or if members are missing.
    /// </param>
    internal sealed record RuntimeState(string Version, string Description, string Missing, string Changed);

    /// <summary>Describes the kernel.</summary>
    /// <param name="Release">The release, as printed by <c>uname -r</c>.</param>
    /// <param name="Architecture">The architecture of the process.</param>
    /// <param name="Hypervisor">The hypervisor, if known. Times are meaningless on TCG and User-Mode Linux.</param>
    /// <param name="Faults">
    /// The known faults of the kernel's TLS that this version has, unless the distribution has corrected them. <see langword="null"/> if the
    /// release does not begin with a version of Linux.
    /// </param>
    internal sealed record KernelState(string Release, string Architecture, string? Hypervisor, IReadOnlyList<string>? Faults);

    /// <summary>Describes OpenSSL.</summary>
    /// <param name="Version">The version with three numbers, or 0.0 for none.</param>
    /// <param name="Text">OpenSSL's version text.</param>
    /// <param name="BuiltWithKtls">
    /// Whether OpenSSL was built with kernel TLS, or <see langword="null"/> if it could not be queried.
    /// </param>
    internal sealed record OpenSslState(string Version, string Text, bool? BuiltWithKtls);

    /// <summary>Describes a direction of a connection with a version and a cipher.</summary>
    /// <param name="Direction">Send or Receive.</param>
    /// <param name="Protocol">Tls12 or Tls13.</param>
    /// <param name="Cipher">The record cipher.</param>
    /// <param name="Reason">The reason why such a connection is not in the kernel in that direction, or None.</param>
    internal sealed record Capability(KtlsDirections Direction, SslProtocols Protocol, string Cipher, KtlsFallbackReason Reason);

    /// <summary>Contains the system's busy polling settings, in microseconds.</summary>
    /// <param name="Read">The value of net.core.busy_read, for receives, or null if it cannot be read.</param>
    /// <param name="Poll">The value of net.core.busy_poll, for poll and epoll, or null if it cannot be read.</param>
    internal sealed record BusyPollState(long? Read, long? Poll);
}
