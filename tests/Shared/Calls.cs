using System.Collections.Concurrent;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>Records the arguments of callbacks as comparable text. Certificates are named by subject.</summary>
internal sealed class Calls
{
    private readonly ConcurrentQueue<string> _calls = new();

    public int Count => _calls.Count;

    public IReadOnlyList<string> List => [.. _calls];

    public void Add(params object?[] arguments) => _calls.Enqueue(string.Join(" | ", arguments.Select(Text)));

    public override string ToString() => string.Join('\n', _calls);

    private static string Text(object? argument) => argument switch
    {
        null => "null",
        X509Certificate certificate => certificate.Subject,
        X509CertificateCollection certificates => $"[{string.Join(", ", certificates.Cast<X509Certificate>().Select(c => c.Subject))}]",
        X509Chain chain => Describe(chain),
        IEnumerable<string> strings => $"[{string.Join(", ", strings)}]",
        _ => $"{argument}",
    };

    private static string Describe(X509Chain chain) => string.Join(
        "; ",
        chain.ChainElements.Select(e => $"{e.Certificate.Subject}{Describe(e.ChainElementStatus)}")
            .Append($"in all{Describe(chain.ChainStatus)}"));

    private static string Describe(X509ChainStatus[] statuses) =>
        string.Concat(statuses.Select(s => $" {s.Status} '{s.StatusInformation}'"));
}
