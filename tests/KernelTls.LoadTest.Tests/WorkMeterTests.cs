using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;

namespace KernelTls.LoadTest.Tests;

public class WorkMeterTests
{
    private readonly WorkMeter _meter = new();

    [Fact]
    public void The_second_half_of_the_run_counts()
    {
        // Ten seconds for the first two requests, then one millisecond for each.
        Look(run: 0, (0, 0), (10_000, 2), (10_001, 3), (10_002, 4));

        Assert.Equal((1000.0, 1.0), Told);
    }

    [Fact]
    public void What_follows_the_run_does_not_count()
    {
        Look(run: 0, (0, 0), (1, 1), (2, 2), (3, 3), (500, 3), (1000, 3));

        Assert.Equal((1000.0, 1.0), Told);
    }

    [Fact]
    public void Each_run_counts_for_itself()
    {
        Look(run: 0, (0, 0), (1000, 1), (2000, 2));
        Look(run: 1, (2002, 3), (2004, 4));

        Assert.Equal((2000.0, 2.0), Told);
    }

    [Fact]
    public void What_was_not_done_has_no_figure()
    {
        Results results = new();
        _meter.AddTo(results);
        Look(run: 0, (0, 0));
        _meter.AddTo(results);
        WorkMeter.Add(results, TimeSpan.FromSeconds(1), operations: 0, bytes: 0);

        Assert.Throws<InvalidOperationException>(() => results.ValueOf(Metrics.ProcessorPerRequest));
        Assert.Throws<InvalidOperationException>(() => results.ValueOf(Metrics.ProcessorPerGigabyte));
    }

    private (double PerRequest, double PerGigabyte) Told
    {
        get
        {
            Results results = new();
            _meter.AddTo(results);
            return ((double)results.ValueOf(Metrics.ProcessorPerRequest), (double)results.ValueOf(Metrics.ProcessorPerGigabyte));
        }
    }

    /// <summary>Looks at so many milliseconds of processor time and requests of a megabyte.</summary>
    private void Look(int run, params (int Milliseconds, int Requests)[] looks)
    {
        foreach ((int milliseconds, int requests) in looks)
        {
            _meter.Look(run, new WorkMeter.Sample(TimeSpan.FromMilliseconds(milliseconds), requests, requests * 1_000_000L));
        }
    }
}
