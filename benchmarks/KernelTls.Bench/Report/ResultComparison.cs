namespace KernelTls.Bench.Report;

/// <summary>Compares two runs and reports regressions or disagreement.</summary>
internal sealed class ResultComparison
{
    /// <summary>The fraction within which two runs of the same code agree.</summary>
    public const double Tolerance = 0.03;

    private const string Worse = "WORSE";

    private readonly BenchResults _old;
    private readonly BenchResults _new;
    private readonly (Measurement Old, Measurement New)[] _pairs;

    /// <exception cref="BenchFailedException">The two runs have no row and mode in common.</exception>
    public ResultComparison(BenchResults old, BenchResults @new)
    {
        _old = old;
        _new = @new;
        _pairs = [.. from row in @new.Rows let other = old.Find(row.Scenario, row.Mode) where other is not null select (other, row)];
        if (_pairs.Length == 0)
        {
            throw new BenchFailedException("the two runs have no row and mode in common");
        }
    }

    /// <summary>
    /// Writes the comparison and returns whether no ratio is worse by more than <see cref="Tolerance"/>. Rows without a
    /// ratio are compared by their amount.
    /// </summary>
    /// <param name="output">The writer for the table.</param>
    /// <param name="mustAgree">
    /// Whether to require instead that no ratio and no amount differs by more than the tolerance in either direction.
    /// </param>
    public bool Write(TextWriter output, bool mustAgree)
    {
        TextTable table = new(
            ["scenario", "mode", "old ratio", "new ratio", "change", "old amount", "new amount", "change", ""], 2, 3, 4, 5, 6, 7);
        bool passed = true;
        foreach ((Measurement old, Measurement @new) in _pairs)
        {
            double amount = (@new.PerOp / old.PerOp) - 1;
            double? ratio = (@new.Ratio / old.Ratio) - 1;
            string mark = Mark(ratio ?? amount);
            bool disagrees = mark != "" || Mark(amount) != "";
            passed &= mustAgree ? !disagrees : mark != Worse;
            table.Add(
                @new.Scenario,
                @new.Mode,
                TextTable.Ratio(old.Ratio),
                TextTable.Ratio(@new.Ratio),
                ratio is { } change ? TextTable.Change(change) : "-",
                TextTable.Amount(old.PerOp, old.Unit),
                TextTable.Amount(@new.PerOp, @new.Unit),
                TextTable.Change(amount),
                mustAgree ? (disagrees ? "DIFFERS" : "") : mark);
        }

        output.WriteLine();
        output.WriteLine($"old: {_old.Surroundings}");
        output.WriteLine($"new: {_new.Surroundings}");
        table.Write(output);
        output.WriteLine();
        WriteMissing("old", _old, _new, output);
        WriteMissing("new", _new, _old, output);
        output.WriteLine(mustAgree
            ? $"The runs {(passed ? "agree" : "do not agree")} within {TextTable.Percent(Tolerance)}, ratios and amounts."
            : $"{(passed ? "Nothing is" : "Something is")} worse by more than {TextTable.Percent(Tolerance)}: by its ratio, by its amount where it has none.");
        return passed;
    }

    private static string Mark(double change) => change switch
    {
        > Tolerance => Worse,
        < -Tolerance => "better",
        _ => "",
    };

    private static void WriteMissing(string name, BenchResults these, BenchResults those, TextWriter output)
    {
        string[] missing = [.. these.Rows.Where(row => those.Find(row.Scenario, row.Mode) is null).Select(row => $"{row.Scenario}/{row.Mode}")];
        if (missing.Length > 0)
        {
            output.WriteLine($"Only in {name}: {string.Join(' ', missing)}");
        }
    }
}
