namespace KernelTls.Tests;

/// <summary>
/// Compares what this library shows with what the stock stack shows, member by member. Every difference must be among
/// the accepted ones, and these must occur.
/// </summary>
internal sealed class SurfaceComparison(IReadOnlyList<SurfaceDifference> accepted, TlsMode mode)
{
    private readonly SurfaceDifference[] _accepted =
        [.. accepted.Where(d => Modes.OnOpenSsl.Contains(mode) && d.IsIn(mode))];

    private readonly HashSet<(SurfaceDifference Difference, string Pattern)> _seen = [];
    private readonly List<string> _wrong = [];

    /// <summary>Gets the number of members compared.</summary>
    public int Members { get; private set; }

    /// <summary>Compares one configuration.</summary>
    public void Add(string configuration, Surface stock, Surface actual)
    {
        List<string> lines = [];
        foreach (string member in stock.Members.Union(actual.Members))
        {
            Members++;
            (string from, string to) = (stock.ValueOf(member), actual.ValueOf(member));
            if (from != to && !IsAccepted(configuration, member, from, to))
            {
                lines.Add($"  {member}\n    expected: {from}\n    actual:   {to}");
            }
        }

        if (lines.Count > 0)
        {
            _wrong.Add($"{configuration}\n{string.Join('\n', lines)}");
        }
    }

    /// <summary>Records a configuration that could not be completed. Thread-safe.</summary>
    public void Fail(string configuration, Exception failure)
    {
        lock (_seen)
        {
            _wrong.Add($"{configuration}\n  could not be completed: {failure}");
        }
    }

    /// <summary>Asserts that nothing differs but what is accepted, and that each accepted difference occurred.</summary>
    public void AssertGood()
    {
        IEnumerable<string> unused =
            from difference in _accepted
            where difference.MayBeAbsent is null
            from pattern in difference.Where.Concat(difference.Members)
            where !_seen.Contains((difference, pattern))
            select $"an accepted difference no longer occurs, '{pattern}': {difference}";
        string[] wrong = [.. _wrong, .. unused];
        Assert.True(wrong.Length == 0, $"{mode} differs from the stock stack:\n{string.Join('\n', wrong)}");
        Assert.True(Members > 0, "nothing was compared");
    }

    private bool IsAccepted(string configuration, string member, string from, string to)
    {
        foreach (SurfaceDifference difference in _accepted)
        {
            if (difference.Covering(configuration, member, from, to) is { } patterns)
            {
                _seen.Add((difference, patterns.Where));
                _seen.Add((difference, patterns.Member));
                return true;
            }
        }

        return false;
    }
}
