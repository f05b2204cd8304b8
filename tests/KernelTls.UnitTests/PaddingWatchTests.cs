using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests when connections expect no padding, with the test's own clock and counter.</summary>
[Trait("system", "any")]
public class PaddingWatchTests
{
    private readonly ManualTime _time = new();
    private readonly PaddingWatch _watch;
    private long? _counter = 1000;
    private int _looks;

    public PaddingWatchTests() => _watch = new PaddingWatch(_time, () =>
    {
        _looks++;
        return _counter;
    });

    [Fact]
    public void A_counter_that_stands_still_changes_nothing()
    {
        for (int i = 0; i < 100; i++)
        {
            Assert.True(_watch.ExpectsNone);
            _time.Advance(TimeSpan.FromSeconds(1));
        }

        Assert.Equal(100, _looks);
    }

    [Fact]
    public void The_counter_is_looked_at_once_a_second()
    {
        for (int i = 0; i < 40; i++)
        {
            Assert.True(_watch.ExpectsNone);
            _time.Advance(TimeSpan.FromMilliseconds(100));
        }

        Assert.Equal(4, _looks);
    }

    /// <summary>Tickets and the trials of other processes of the namespace are a few.</summary>
    [Fact]
    public void Some_padded_records_change_nothing()
    {
        Assert.True(_watch.ExpectsNone);
        for (int i = 0; i < 10; i++)
        {
            Add(PaddingWatch.MostBetweenLooks);
            Assert.True(_watch.ExpectsNone);
        }
    }

    [Fact]
    public void Many_change_it_for_a_minute()
    {
        Assert.True(_watch.ExpectsNone);
        Add(PaddingWatch.MostBetweenLooks + 1);

        for (int i = 0; i < 60; i++)
        {
            Assert.False(_watch.ExpectsNone);
            _time.Advance(TimeSpan.FromSeconds(1));
        }

        Assert.True(_watch.ExpectsNone);
    }

    [Fact]
    public void A_peer_that_goes_on_extends_the_minute()
    {
        Assert.True(_watch.ExpectsNone);
        Add(PaddingWatch.MostBetweenLooks + 1);
        Assert.False(_watch.ExpectsNone);
        _time.Advance(TimeSpan.FromSeconds(30));
        Add(PaddingWatch.MostBetweenLooks + 1);
        Assert.False(_watch.ExpectsNone);
        _time.Advance(TimeSpan.FromSeconds(59));

        Assert.False(_watch.ExpectsNone);
    }

    [Fact]
    public void A_counter_that_cannot_be_read_means_padding()
    {
        _counter = null;

        Assert.False(_watch.ExpectsNone);
        _time.Advance(TimeSpan.FromHours(1));
        Assert.False(_watch.ExpectsNone);
    }

    [Fact]
    public void A_counter_that_can_be_read_again_begins_anew()
    {
        Assert.True(_watch.ExpectsNone);
        _counter = null;
        _time.Advance(TimeSpan.FromSeconds(1));
        Assert.False(_watch.ExpectsNone);
        _counter = 5000;
        _time.Advance(TimeSpan.FromSeconds(1));

        Assert.True(_watch.ExpectsNone);
    }

    /// <summary>A second thread that asks during the first look must not assume that no peer pads.</summary>
    [Fact]
    public void Until_the_first_look_is_done_padding_is_expected()
    {
        bool? during = null;
        PaddingWatch? watch = null;
        watch = new PaddingWatch(_time, () =>
        {
            during = watch!.ExpectsNone;
            return 0;
        });

        Assert.True(watch.ExpectsNone);
        Assert.False(during);
    }

    private void Add(long records)
    {
        _counter += records;
        _time.Advance(TimeSpan.FromSeconds(1));
    }
}
