using KernelTls.Offload;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests that a value is determined once and kept, unless it is not final: then it is determined again after a while.
/// </summary>
[Trait("system", "any")]
public class RefreshingValueTests
{
    [Fact]
    public void A_final_answer_is_found_once()
    {
        int asked = 0;
        RefreshingValue<int> answer = new(() => ++asked, isFinal: _ => true, TimeSpan.FromSeconds(5), new Clock());

        Assert.False(answer.IsKnown);
        Assert.Equal(1, answer.Value);
        Assert.Equal(1, answer.Value);
        Assert.True(answer.IsKnown);
    }

    [Fact]
    public void A_passing_answer_is_found_again_after_the_pause_and_not_before()
    {
        int asked = 0;
        Clock clock = new();
        RefreshingValue<int> answer = new(() => ++asked, isFinal: a => a == 3, TimeSpan.FromSeconds(5), clock);

        Assert.Equal(1, answer.Value);
        clock.Advance(TimeSpan.FromSeconds(4.9));
        Assert.Equal(1, answer.Value);
        clock.Advance(TimeSpan.FromSeconds(0.2));
        Assert.Equal(2, answer.Value);
        Assert.Equal(2, answer.Value);
        clock.Advance(TimeSpan.FromSeconds(6));
        Assert.Equal(3, answer.Value);
        clock.Advance(TimeSpan.FromDays(1));
        Assert.Equal(3, answer.Value);
    }

    /// <summary>While one thread determines the value again, the others use the known one.</summary>
    [Fact]
    public void Nobody_waits_for_another_thread_that_asks_again()
    {
        int asked = 0;
        Clock clock = new();
        RefreshingValue<int>? answer = null;
        List<int> meanwhile = [];
        answer = new RefreshingValue<int>(
            () =>
            {
                if (++asked == 2)
                {
                    Thread other = new(() => meanwhile.Add(answer!.Value));
                    other.Start();
                    Assert.True(other.Join(KernelTls.Tests.Limits.Wait), "the other thread waits");
                }

                return asked;
            },
            isFinal: _ => false,
            TimeSpan.FromSeconds(5),
            clock);

        Assert.Equal(1, answer.Value);
        clock.Advance(TimeSpan.FromSeconds(6));
        Assert.Equal(2, answer.Value);
        Assert.Equal([1], meanwhile);
    }

    private sealed class Clock : TimeProvider
    {
        private long _ticks;

        public override long TimestampFrequency => TimeSpan.TicksPerSecond;

        public override long GetTimestamp() => _ticks;

        public void Advance(TimeSpan time) => _ticks += time.Ticks;
    }
}
