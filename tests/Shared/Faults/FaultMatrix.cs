using System.Diagnostics;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Runs the cases of a matrix, several at a time, and compares them with the stock stack.</summary>
internal static class FaultMatrix
{
    private const int AtATime = 24;

    /// <summary>Runs the cases.</summary>
    /// <param name="output">The writer for the number of cases and their results.</param>
    /// <param name="accepted">The differences that may occur and must occur.</param>
    /// <param name="mode">The mode under test.</param>
    /// <param name="version">The TLS version.</param>
    /// <param name="cases">The cases.</param>
    /// <param name="fault">The function that returns the name of a case's fault.</param>
    /// <param name="run">
    /// The function that runs a case in a mode, or returns null if there is no such case. Its last argument is whether
    /// the case may wait.
    /// </param>
    public static async Task RunAsync<T>(
        ITestOutputHelper output,
        IReadOnlyList<FaultDifference> accepted,
        TlsMode mode,
        SslProtocols version,
        IEnumerable<T> cases,
        Func<T, string> fault,
        Func<T, TlsMode, bool, Task<FaultOutcome?>> run)
    {
        Stopwatch watch = Stopwatch.StartNew();
        FaultComparison comparison = new(accepted, mode, version);
        using SemaphoreSlim gate = new(AtATime);
        await Task.WhenAll(cases.Select(async each =>
        {
            await gate.WaitAsync();
            try
            {
                await CompareAsync(each);
            }
            catch (Exception e)
            {
                comparison.Fail(fault(each), $"{each}", e);
            }
            finally
            {
                gate.Release();
            }
        }));
        output.WriteLine(
            $"{comparison.Cases} cases on {mode}, {version}: {comparison.Worse} worse than stock, {comparison.Hangs} hangs, "
            + $"in {watch.Elapsed.TotalSeconds:0} s");
        output.WriteLine($"{comparison}");
        comparison.AssertGood();

        async Task CompareAsync(T each)
        {
            if (await run(each, TlsMode.Stock, true) is not { } stock)
            {
                return;
            }

            FaultOutcome? actual = await run(each, mode, stock.Ending == FaultOutcome.Waits || comparison.MayWait(fault(each)));
            Assert.True(actual is not null, $"the stock stack met the fault, {mode} did not");
            FaultOutcome? alerts = mode != TlsMode.Kernel || IsSettled(stock, actual) ? stock : await run(each, TlsMode.DirectOpenSsl, true);
            Assert.True(alerts is not null, $"the stock stack met the fault, {TlsMode.DirectOpenSsl} did not");
            comparison.Add(fault(each), $"{each}", stock, alerts, actual);
        }
    }

    /// <summary>
    /// Returns whether the alerts need no comparison with OpenSSL: both are the same, or nothing failed. If the stock
    /// stack fails without an alert, OpenSSL may still send one.
    /// </summary>
    private static bool IsSettled(FaultOutcome stock, FaultOutcome actual) =>
        stock.Alert == actual.Alert && (actual.Alert.Length > 0 || (!stock.Failed && !actual.Failed));
}
