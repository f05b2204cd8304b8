using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Rehearsal;

/// <summary>
/// Represents a TLS implementation, selected only by environment variables. The profiles of benchmarks/crank use the
/// same variables.
/// </summary>
internal sealed record RehearsalMode(string Name, IReadOnlyDictionary<string, string> Environment)
{
    public static IReadOnlyList<RehearsalMode> All { get; } =
    [
        new("standard", new Dictionary<string, string>()),
        new("directopenssl", new Dictionary<string, string> { [TlsChoice.DirectVariable] = "1" }),
        new("ktls", new Dictionary<string, string>
        {
            [TlsChoice.KernelVariable] = "1",
            [TlsChoice.OptionsPrefix + nameof(KtlsOptions.Mode)] = nameof(KtlsMode.Required),
        }),
    ];
}
