using System.Diagnostics;

namespace KernelTls.Tests;

/// <summary>Runs the cases of a surface on the stock stack and in a mode, several at a time, and compares them.</summary>
internal static class SurfaceRun
{
    private const int AtATime = 8;

    /// <summary>Runs the cases.</summary>
    /// <param name="output">The writer for the number of members compared.</param>
    /// <param name="accepted">The differences that may occur and must occur.</param>
    /// <param name="mode">The mode under test.</param>
    /// <param name="cases">The cases, each with a separate text.</param>
    /// <param name="run">The function that runs a case in a mode.</param>
    public static async Task CompareAsync<T>(
        ITestOutputHelper output,
        IReadOnlyList<SurfaceDifference> accepted,
        TlsMode mode,
        IReadOnlyList<T> cases,
        Func<T, TlsMode, Task<Surface>> run)
        where T : notnull
    {
        Assert.Equal(cases.Count, cases.DistinctBy(c => $"{c}").Count());
        Stopwatch watch = Stopwatch.StartNew();
        TimeSpan processor = Process.GetCurrentProcess().TotalProcessorTime;
        SurfaceComparison comparison = new(accepted, mode);
        TimeSpan[] times = new TimeSpan[cases.Count];
        (Surface Stock, Surface Actual)[] results = new (Surface, Surface)[cases.Count];
        await Parallel.ForAsync(0, cases.Count, new ParallelOptions { MaxDegreeOfParallelism = AtATime }, async (i, _) =>
        {
            Stopwatch own = Stopwatch.StartNew();
            try
            {
                results[i] = (await run(cases[i], TlsMode.Stock), await run(cases[i], mode));
            }
            catch (Exception e)
            {
                comparison.Fail($"{cases[i]}", e);
            }

            times[i] = own.Elapsed;
        });
        for (int i = 0; i < cases.Count; i++)
        {
            if (results[i].Actual is not null)
            {
                comparison.Add($"{cases[i]}", results[i].Stock, results[i].Actual);
            }
        }

        output.WriteLine(
            $"{comparison.Members} members of {cases.Count} configurations on {mode}, in {watch.Elapsed.TotalSeconds:0.0} s, "
            + $"{(Process.GetCurrentProcess().TotalProcessorTime - processor).TotalSeconds:0.0} s of processor time; "
            + $"the longest took {times.Max().TotalSeconds:0.0} s: {cases[Array.IndexOf(times, times.Max())]}");
        comparison.AssertGood();
    }
}
