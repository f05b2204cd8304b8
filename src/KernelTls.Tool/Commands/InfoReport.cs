using System.Security.Authentication;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Commands;

/// <summary>Everything <c>ktls info</c> says; the JSON document's layout, which docs/troubleshooting.md describes.</summary>
internal sealed record InfoReport(
    string Verdict,
    bool Supported,
    KtlsFallbackReason Reason,
    string Detail,
    string Advice,
    InfoReport.ToggleState Toggle,
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
    /// <param name="State">On, Off, Unset or Invalid: what a process with this environment has by KtlsMode.Environment.</param>
    /// <param name="Source">The variable or switch that says so, with its value; else empty.</param>
    internal sealed record ToggleState(string State, string Source);

    /// <param name="Release">As <c>uname -r</c> prints it.</param>
    /// <param name="Architecture">The process's.</param>
    /// <param name="Hypervisor">What the machine runs on, where that can be told. On TCG and User-Mode Linux times mean nothing.</param>
    internal sealed record KernelState(string Release, string Architecture, string? Hypervisor);

    /// <param name="Version">Three numbers; 0.0 for none.</param>
    /// <param name="Text">OpenSSL's own words.</param>
    /// <param name="BuiltWithKtls"><see langword="null"/>: OpenSSL could not be asked.</param>
    internal sealed record OpenSslState(string Version, string Text, bool? BuiltWithKtls);

    /// <param name="Direction">Send or Receive.</param>
    /// <param name="Protocol">Tls12 or Tls13.</param>
    /// <param name="Cipher">The record cipher.</param>
    /// <param name="Reason">None: such a connection is in the kernel in that direction.</param>
    internal sealed record Capability(KtlsDirections Direction, SslProtocols Protocol, string Cipher, KtlsFallbackReason Reason);

    /// <param name="Read">net.core.busy_read, in microseconds: for receives. null: not to be read here.</param>
    /// <param name="Poll">net.core.busy_poll, in microseconds: for poll and epoll.</param>
    internal sealed record BusyPollState(long? Read, long? Poll);
}
