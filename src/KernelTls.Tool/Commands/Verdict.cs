using System.Security.Authentication;

namespace KernelTls.Tool.Commands;

/// <summary>Formats the first line of info. Has no side effects.</summary>
internal static class Verdict
{
    /// <summary>
    /// Returns a line that begins with <c>yes:</c>, <c>partly:</c> or <c>no:</c> and ends with the state of the switch.
    /// </summary>
    /// <param name="reason">The reason why kernel TLS is not available at all, or None.</param>
    /// <param name="capabilities">
    /// The capabilities. The rows of AES-GCM decide, because every peer supports that cipher.
    /// </param>
    /// <param name="canRekey">Whether TLS 1.3 keys can change.</param>
    /// <param name="toggle">The switch in this environment.</param>
    public static string Of(
        KtlsFallbackReason reason,
        IReadOnlyList<InfoReport.Capability> capabilities,
        bool canRekey,
        InfoReport.ToggleState toggle)
    {
        if (reason != KtlsFallbackReason.None)
        {
            return $"no: {Advice.Named(reason)}";
        }

        InfoReport.Capability[] missing = [.. capabilities.Where(c => c.Cipher == "AES-256-GCM" && c.Reason != KtlsFallbackReason.None)];
        string what = missing.Length == 0
            ? "yes: the kernel encrypts and decrypts TLS 1.2 and TLS 1.3"
            : "partly: all but " + string.Join(", ", missing.Select(c => $"{Verb(c.Direction)} {Name(c.Protocol)} ({c.Reason})")) + " is in the kernel";
        return $"{what}{(canRekey ? "" : Keys(missing))}; {Switch(toggle)}";
    }

    /// <summary>Returns the usual name of a version.</summary>
    public static string Name(SslProtocols protocol) => protocol switch
    {
        SslProtocols.Tls12 => "TLS 1.2",
        SslProtocols.Tls13 => "TLS 1.3",
        _ => protocol.ToString(),
    };

    /// <summary>
    /// Returns the text about keys. A receiving key that OpenSSL holds can change; a key that the kernel holds cannot.
    /// </summary>
    private static string Keys(InfoReport.Capability[] missing) =>
        missing.Any(c => c is { Direction: KtlsDirections.Receive, Protocol: SslProtocols.Tls13 })
            ? "; TLS 1.3 keys cannot change there, a peer that asks this end to change its own ends the connection"
            : "; TLS 1.3 keys cannot change there, a peer that changes its own ends the connection";

    private static string Verb(KtlsDirections direction) => direction == KtlsDirections.Send ? "sending" : "receiving";

    private static string Switch(InfoReport.ToggleState toggle) => toggle.State switch
    {
        "On" => $"switched on by {toggle.Source}",
        "Off" => $"switched off by {toggle.Source}",
        "Invalid" => $"not switched on, {toggle.Source} is neither 1 nor 0",
        _ => "not switched on in this environment: set DOTNET_SYSTEM_NET_SECURITY_KTLS=1, or request it in code",
    };
}
