using KernelTls.IO;

namespace KernelTls.UnitTests;

/// <summary>Tests the records that <see cref="SendKeys"/> reserves. What it sends is in KeyChangeTests.</summary>
public class SendKeysTests
{
    private const int Record = RecordBudget.RecordSize;

    private readonly SendGate _gate = new();

    [Fact]
    public async Task Records_of_unsent_bytes_are_given_back()
    {
        SendKeys keys = Keys(limit: 4);

        Assert.True(keys.TryReserve((3 * Record) + 1));
        Assert.Equal(4, keys.RecordsSent);
        Assert.False(keys.TryReserve(1), "the key has no record left");
        Assert.True(keys.TryReserve(0));

        keys.Refund((3 * Record) + 1, Record + 1);
        Assert.Equal(2, keys.RecordsSent);
        Assert.False(keys.TryReserve((2 * Record) + 1));
        Assert.Equal(2, keys.RecordsSent);
        Assert.Equal(2 * Record, await keys.ReserveAsync((2 * Record) + 1, CancellationToken.None));
        Assert.Equal(4, keys.RecordsSent);
    }

    [Fact]
    public async Task At_most_64_KiB_are_reserved_between_two_looks_for_an_answer()
    {
        SendKeys keys = Keys(limit: 100);

        Assert.Equal(64 * 1024, await keys.ReserveAsync(1 << 20, CancellationToken.None));
        Assert.Equal(64 * 1024, keys.Reserve(1 << 20));
    }

    /// <summary>RFC 8446, section 4.6.3. Memory, segments and files all ask TryReserve.</summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void Nothing_is_reserved_before_an_answer_that_can_be_sent(bool canUpdate)
    {
        SendKeys keys = Keys(limit: 100, canUpdate);
        Assert.True(_gate.TryEnter());
        Assert.True(keys.TryReserve(1));

        _gate.RequestAnswer();

        Assert.Equal(!canUpdate, keys.TryReserve(1));
    }

    [Fact]
    public void Nothing_is_reserved_when_the_gate_is_shut()
    {
        SendKeys keys = Keys(limit: 100);

        _gate.Close();

        Assert.False(keys.TryReserve(1));
        Assert.Equal(0, keys.RecordsSent);
    }

    private SendKeys Keys(long limit, bool canUpdate = true) =>
        new(_gate, writer: null!, socket: null!, new KeyUpdates(canUpdate, canUpdate), limit);
}
