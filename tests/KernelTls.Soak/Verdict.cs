using System.Globalization;

namespace KernelTls.Soak;

/// <summary>Evaluates the measurements and findings of a run, with a line for each condition.</summary>
internal sealed class Verdict
{
    /// <summary>
    /// The memory that an operation may leak on average, in bytes: far less than the smallest object of a connection.
    /// </summary>
    private const double ManagedLimit = 64;

    /// <summary>
    /// The same limit for resident memory, which is coarse because of pages and libc's heaps. An SSL has tens of
    /// kilobytes.
    /// </summary>
    private const double ResidentLimit = 1024;

    /// <summary>
    /// The variation of the managed heap's pools, in bytes: a smaller increase over the whole run is not significant.
    /// </summary>
    private const double ManagedBreath = 1 << 20;

    /// <summary>The same for resident memory, which also grows by code that runs for the first time.</summary>
    private const double ResidentBreath = 4 << 20;

    private readonly IReadOnlyList<Footprint> _footprints;
    private readonly Findings _findings;
    private readonly Tally _tally;
    private int _passed;
    private int _failed;

    public Verdict(IReadOnlyList<Footprint> footprints, Findings findings, Tally tally)
    {
        _footprints = footprints;
        _findings = findings;
        _tally = tally;
    }

    /// <summary>
    /// Gets the number of rounds in which pools, caches and compiled code reach their size: the first third.
    /// </summary>
    private int WarmUp => _footprints.Count / 3;

    private Footprint Baseline => _footprints[WarmUp - 1];

    private Footprint Last => _footprints[^1];

    /// <summary>Prints the lines and the overall result, and returns whether all conditions hold.</summary>
    public bool Print()
    {
        Console.WriteLine($"{_tally.Operations} operations: {_tally}");
        Check(_tally.Operations > 0 && _findings.Count(Finding.Failure) == 0, $"operations end as they should: {_findings.Count(Finding.Failure)} did not");
        Check(_findings.Count(Finding.Corruption) == 0, $"payloads have the hash they were sent with: {_findings.Count(Finding.Corruption)} had not");
        Check(_findings.Count(Finding.Hang) == 0, $"nothing hangs: {_findings.Count(Finding.Hang)} did");
        CheckEqual("descriptors", f => f.Descriptors.Count, DescribeNewDescriptors());
        CheckEqual("native connections", f => f.Connections);
        CheckEqual("sockets that encrypt in the kernel", f => f.KernelSending);
        CheckEqual("sockets that decrypt in the kernel", f => f.KernelReceiving);
        CheckSlope("managed memory", f => f.Managed, ManagedLimit, ManagedBreath);
        CheckSlope("resident memory", f => f.Resident, ResidentLimit, ResidentBreath);
        Console.WriteLine($"{_passed} passed, {_failed} failed, 0 skipped");
        return _failed == 0;
    }

    private void CheckEqual(string what, Func<Footprint, long> select, string details = "") =>
        Check(select(Last) <= select(Baseline), $"{what} are flat: {select(Baseline)} then, {select(Last)} now{details}");

    private string DescribeNewDescriptors()
    {
        List<string> added = [.. Last.Descriptors];
        foreach (string known in Baseline.Descriptors)
        {
            added.Remove(known);
        }

        return Last.Descriptors.Count > Baseline.Descriptors.Count ? $" ({string.Join(", ", added.Take(10))})" : "";
    }

    private void CheckSlope(string what, Func<Footprint, long> select, double limit, double breath)
    {
        Footprint[] measured = [.. _footprints.Skip(WarmUp)];
        Slope slope = Slope.Of([.. measured.Select(f => ((double)f.Operations, (double)select(f)))]);
        double growth = slope.AtLeast * (measured[^1].Operations - measured[0].Operations);
        Check(
            slope.AtLeast <= limit || growth <= breath,
            string.Create(CultureInfo.InvariantCulture, $"{what} is flat: {slope.Value:0} bytes an operation (± {2 * slope.Error:0}, limit {limit:0})"));
    }

    private void Check(bool holds, string what)
    {
        Console.WriteLine($"{(holds ? "passed" : "FAILED")}  {what}");
        _passed += holds ? 1 : 0;
        _failed += holds ? 0 : 1;
    }
}
