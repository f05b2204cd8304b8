using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Describes an accepted difference from the stock stack.</summary>
/// <param name="Faults">The names of the faults. A name that ends in * stands for all that begin with it.</param>
/// <param name="Field">The field that differs.</param>
/// <param name="Stock">
/// The result of the stock stack or, for an alert of kernel TLS, of OpenSSL. Several are separated by "or". Null for
/// any.
/// </param>
/// <param name="Actual">The result of this library.</param>
/// <param name="Why">The section of an RFC that permits it.</param>
internal sealed record FaultDifference(string[] Faults, FaultField Field, string? Stock, string Actual, string Why)
{
    /// <summary>Gets a value that indicates whether only kernel TLS differs.</summary>
    public bool IsKernelOnly { get; init; }

    /// <summary>Gets the version in which it occurs, or <see cref="SslProtocols.None"/> for both.</summary>
    public SslProtocols Only { get; init; }

    /// <summary>Gets the kernels, OpenSSLs and runtimes with which it occurs.</summary>
    public FaultCondition When { get; init; } = FaultCondition.Always;

    /// <summary>Gets the reason why it need not occur in each run, or <see langword="null"/> if it must.</summary>
    public string? MayBeAbsent { get; init; }

    public bool Covers(string fault) => Faults.Any(f => f == fault || (f.EndsWith('*') && fault.StartsWith(f[..^1], StringComparison.Ordinal)));

    public bool IsIn(TlsMode mode, SslProtocols version) =>
        (!IsKernelOnly || mode == TlsMode.Kernel) && (Only == SslProtocols.None || Only == version) && When.Holds(mode, version);

    public bool Matches(FaultField field, string stock, string actual) =>
        field == Field && actual == Actual && (Stock is null || Stock.Split(" or ").Contains(stock));

    public override string ToString() => $"{string.Join(", ", Faults)}: {Field} '{Stock}' -> '{Actual}'";
}

/// <summary>Specifies a part of a <see cref="FaultOutcome"/>.</summary>
internal enum FaultField
{
    Ending,
    Delivered,
    Alert,
    Write,
}
