using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests how many handshake messages a peer may send, with the test's own clock.</summary>
[Trait("Pitfall", "4")]
[Trait("system", "any")]
public class HandshakeMessageLimiterTests
{
    private readonly ManualTime _time = new();
    private HandshakeMessageLimiter _limiter;
    private long _recordsSent;

    public HandshakeMessageLimiterTests() => _limiter = new HandshakeMessageLimiter(_time);

    [Fact]
    public void A_burst_passes_and_one_message_more_does_not()
    {
        Assert.Equal(HandshakeMessageLimiter.Burst, TakeAll());
        Assert.False(_limiter.TryAcquire(1, _recordsSent));
    }

    [Fact]
    public void Messages_that_come_at_once_each_take_a_token()
    {
        Assert.True(_limiter.TryAcquire(HandshakeMessageLimiter.Burst - 1, _recordsSent));
        Assert.False(_limiter.TryAcquire(2, _recordsSent));
    }

    [Fact]
    public void Each_second_allows_one_message_however_it_is_divided()
    {
        TakeAll();
        for (int i = 0; i < 10; i++)
        {
            _time.Advance(TimeSpan.FromSeconds(0.3));
            _limiter.TryAcquire(0, _recordsSent);
        }

        Assert.Equal(3, TakeAll());
    }

    [Fact]
    public void Received_data_fills_the_burst_and_no_more()
    {
        TakeAll();
        for (int i = 0; i < 1000; i++)
        {
            _limiter.AddReceivedData();
        }

        Assert.Equal(HandshakeMessageLimiter.Burst, TakeAll());
    }

    [Fact]
    public void Each_record_sent_allows_one_message()
    {
        TakeAll();
        _recordsSent += 1000;
        Assert.Equal(1000, TakeAll());
        Assert.Equal(0, TakeAll());
    }

    [Fact]
    public void Received_data_takes_nothing_from_what_records_sent_have_allowed()
    {
        _recordsSent += 1000;
        Assert.True(_limiter.TryAcquire(1, _recordsSent));
        _limiter.AddReceivedData();
        Assert.Equal(HandshakeMessageLimiter.Burst + 999, TakeAll());
    }

    [Fact]
    public void What_is_saved_is_bounded_however_much_is_sent_and_however_long_it_takes()
    {
        _recordsSent += 10L * HandshakeMessageLimiter.MaxTokens;
        _time.Advance(TimeSpan.FromDays(10));
        Assert.Equal(HandshakeMessageLimiter.MaxTokens, TakeAll());
    }

    /// <summary>Time is not work of this end, which bounds the peer's messages.</summary>
    [Fact]
    public void However_long_a_connection_is_idle_it_saves_a_burst_and_no_more()
    {
        _time.Advance(TimeSpan.FromDays(10));
        Assert.Equal(HandshakeMessageLimiter.Burst, TakeAll());
        _time.Advance(TimeSpan.FromDays(10));
        Assert.Equal(HandshakeMessageLimiter.Burst, TakeAll());
    }

    [Fact]
    public void Time_takes_nothing_from_what_records_sent_have_allowed()
    {
        _recordsSent += 1000;
        Assert.True(_limiter.TryAcquire(0, _recordsSent));
        _time.Advance(TimeSpan.FromDays(10));
        Assert.Equal(HandshakeMessageLimiter.Burst + 1000, TakeAll());
    }

    /// <summary>
    /// JSSE with a full send buffer before the answer: a message for each record, for as long as the download lasts.
    /// </summary>
    [Fact]
    public void A_peer_that_asks_with_each_record_it_reads_is_never_cut_off()
    {
        for (int i = 0; i < 1_000_000; i++)
        {
            _recordsSent++;
            Assert.True(_limiter.TryAcquire(1, _recordsSent), $"message {i}");
        }
    }

    /// <summary>Such a peer has no reason to send twice as many messages as records.</summary>
    [Fact]
    public void A_peer_that_sends_more_than_it_is_sent_is_cut_off()
    {
        int passed = 0;
        do
        {
            _recordsSent++;
            passed++;
        }
        while (_limiter.TryAcquire(2, _recordsSent) && passed < 1_000_000);

        Assert.Equal(HandshakeMessageLimiter.Burst + 1, passed);
    }

    /// <summary>Returns how many messages pass, one by one, until the limiter has no token left.</summary>
    private int TakeAll()
    {
        int taken = 0;
        HandshakeMessageLimiter tried;
        do
        {
            tried = _limiter;
            if (!tried.TryAcquire(1, _recordsSent))
            {
                return taken;
            }

            _limiter = tried;
            taken++;
        }
        while (taken < 10_000_000);

        return taken;
    }
}
