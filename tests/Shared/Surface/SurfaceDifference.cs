using System.IO.Enumeration;

namespace KernelTls.Tests;

/// <summary>Describes an accepted difference from what the stock stack shows. In each pattern * stands for any text.</summary>
/// <param name="Where">The patterns of the configurations. Each must occur.</param>
/// <param name="Members">The patterns of the members. Each must occur.</param>
/// <param name="Stock">The pattern of the stock stack's values.</param>
/// <param name="Actual">The pattern of this library's values.</param>
/// <param name="Why">The reason, for a reader of docs/differences.md.</param>
internal sealed record SurfaceDifference(string[] Where, string[] Members, string Stock, string Actual, string Why)
{
    /// <summary>Gets a value that indicates whether only kernel TLS differs.</summary>
    public bool IsKernelOnly { get; init; }

    /// <summary>Gets the kernels, OpenSSLs and runtimes with which it occurs.</summary>
    public FaultCondition When { get; init; } = FaultCondition.Always;

    /// <summary>Gets the reason why it need not occur in each run, or <see langword="null"/> if it must.</summary>
    public string? MayBeAbsent { get; init; }

    public bool IsIn(TlsMode mode) =>
        (!IsKernelOnly || mode == TlsMode.Kernel) && When.Holds(mode, System.Security.Authentication.SslProtocols.None);

    /// <summary>Returns the patterns that cover a difference, or <see langword="null"/>.</summary>
    public (string Where, string Member)? Covering(string configuration, string member, string stock, string actual) =>
        Where.FirstOrDefault(w => Is(w, configuration)) is { } where && Members.FirstOrDefault(m => Is(m, member)) is { } covering
            && Is(Stock, stock) && Is(Actual, actual) ? (where, covering) : null;

    public override string ToString() => $"{string.Join(", ", Members)}: '{Stock}' -> '{Actual}' ({string.Join(" | ", Where)})";

    private static bool Is(string pattern, string text) =>
        FileSystemName.MatchesSimpleExpression(pattern.Replace("\\", "\\\\", StringComparison.Ordinal), text, ignoreCase: false);
}
