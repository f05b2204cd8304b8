using System.Globalization;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>
/// Compares the results of faults with those of the stock stack. Every difference must be among the accepted ones, and
/// these must occur. Thread-safe.
/// </summary>
internal sealed class FaultComparison(IReadOnlyList<FaultDifference> accepted, TlsMode mode, SslProtocols version)
{
    private readonly Lock _lock = new();
    private readonly FaultDifference[] _accepted = [.. accepted.Where(d => d.IsIn(mode, version))];
    private readonly HashSet<FaultDifference> _seen = [];
    private readonly List<string> _wrong = [];
    private readonly SortedDictionary<string, int> _outcomes = new(StringComparer.Ordinal);

    /// <summary>Gets the number of cases compared.</summary>
    public int Cases { get; private set; }

    /// <summary>Gets the number of differences that are not accepted.</summary>
    public int Worse { get; private set; }

    /// <summary>Gets the number of waits that did not end.</summary>
    public int Hangs { get; private set; }

    /// <summary>Returns whether it is accepted that a read waits after this fault.</summary>
    public bool MayWait(string fault) => _accepted.Any(d => d.Covers(fault) && d.Actual == FaultOutcome.Waits);

    /// <summary>Compares one case.</summary>
    /// <param name="fault">The name of the fault.</param>
    /// <param name="what">The rest of the case, for messages.</param>
    /// <param name="stock">The result of the stock stack.</param>
    /// <param name="alerts">
    /// The result whose alerts to compare with: OpenSSL's for the kernel, otherwise that of the stock stack.
    /// </param>
    /// <param name="actual">The result in the mode under test.</param>
    public void Add(string fault, string what, FaultOutcome stock, FaultOutcome alerts, FaultOutcome actual)
    {
        lock (_lock)
        {
            Cases++;
            string outcome = $"{fault}: stock {stock}; {mode} {actual}";
            _outcomes[outcome] = _outcomes.GetValueOrDefault(outcome) + 1;
            // An error is better than waiting for data that will not arrive.
            bool isBetter = stock.Ending == FaultOutcome.Waits && actual.Ending != FaultOutcome.End;
            bool isAccepted = Check(FaultField.Ending, stock.Ending, actual.Ending, isBetter);

            // More of the peer's data is better. Data missing after an accepted error is part of that error.
            bool hasEnough = actual.Delivered >= stock.Delivered || isAccepted;
            Check(FaultField.Delivered, $"{stock.Delivered}", $"{actual.Delivered}", hasEnough);

            // Informing the peer why the connection ends is better.
            Check(FaultField.Alert, alerts.Alert, actual.Alert, alerts.Alert.Length == 0 && actual.Failed);
            if (!stock.Failed && !actual.Failed)
            {
                Check(FaultField.Write, stock.Write, actual.Write, actual.Write == FaultOutcome.Works);
            }
        }

        bool Check(FaultField field, string from, string to, bool isGood)
        {
            if (isGood || from == to)
            {
                return false;
            }

            if (_accepted.FirstOrDefault(d => d.Covers(fault) && d.Matches(field, from, to)) is { } difference)
            {
                _seen.Add(difference);
                return true;
            }

            Worse++;
            Hangs += to == FaultOutcome.Waits ? 1 : 0;
            _wrong.Add($"{fault}, {version}, {what}: {field} is '{to}', not '{from}'\n  stock: {stock}\n  {mode}: {actual}");
            return false;
        }
    }

    /// <summary>Records a case that could not be completed.</summary>
    public void Fail(string fault, string what, Exception failure)
    {
        lock (_lock)
        {
            Cases++;
            Hangs += failure is TimeoutException ? 1 : 0;
            _wrong.Add($"{fault}, {version}, {what}: {failure}");
        }
    }

    /// <summary>Returns the results of the cases and their counts.</summary>
    public override string ToString() => string.Join('\n', _outcomes.Select(o => string.Create(CultureInfo.InvariantCulture, $"{o.Value} x {o.Key}")));

    /// <summary>Asserts that nothing was worse, and that each accepted difference occurred.</summary>
    public void AssertGood()
    {
        IEnumerable<string> stale = _accepted
            .Where(d => d.MayBeAbsent is null && !_seen.Contains(d))
            .Select(d => $"{version}, {mode}: an accepted difference no longer occurs: {d}");
        string[] wrong = [.. _wrong, .. stale];
        Assert.True(wrong.Length == 0, string.Join('\n', wrong));
    }
}
