using System.Collections.Concurrent;

namespace KernelTls.Soak;

/// <summary>Collects the findings, by kind. Thread-safe.</summary>
internal sealed class Findings
{
    private const int Shown = 10;
    private readonly ConcurrentQueue<(Finding Kind, string What)> _all = new();

    public void Add(Finding kind, string what)
    {
        _all.Enqueue((kind, what));
        if (_all.Count(f => f.Kind == kind) <= Shown)
        {
            Console.WriteLine($"  {kind}: {what}");
        }
    }

    /// <summary>Returns the number of findings of a kind.</summary>
    public int Count(Finding kind) => _all.Count(f => f.Kind == kind);
}
