using KernelTls.IO;

namespace KernelTls.UnitTests;

/// <summary>Tests the turns of senders, and the answer to a peer's KeyUpdate at their end.</summary>
public class SendGateTests
{
    private readonly TaskCompletionSource _answer = new();
    private readonly SendGate _gate;
    private int _answers;

    public SendGateTests()
    {
        _gate = new SendGate(() =>
        {
            if (!_gate!.IsAnswerDue)
            {
                return Task.CompletedTask;
            }

            _gate.IsAnswerDue = false;
            _answers++;
            return _answer.Task;
        });
    }

    [Fact]
    public void A_request_without_a_turn_is_answered_at_once()
    {
        _answer.SetResult();

        _gate.RequestAnswer();

        Assert.Equal(1, _answers);
        Assert.True(_gate.IsOpen);
        Assert.True(_gate.TryEnter());
    }

    [Fact]
    public void A_request_during_a_turn_is_answered_at_its_end_and_no_one_enters_before()
    {
        Assert.True(_gate.TryEnter());
        _gate.RequestAnswer();
        Assert.Equal(0, _answers);
        _gate.IsIntact = true;

        _gate.Exit();

        Assert.Equal(1, _answers);
        Assert.False(_gate.TryEnter(), "before the answer is sent");
        _answer.SetResult();
        Assert.True(SpinWait.SpinUntil(_gate.TryEnter, TimeSpan.FromSeconds(10)), "after it");
        Assert.True(_gate.IsOpen);
    }

    /// <summary>The request arrives when the end of the turn has looked already, and finds the gate shut.</summary>
    [Fact]
    public void A_request_as_a_turn_ends_is_answered_all_the_same()
    {
        int ends = 0;
        SendGate gate = null!;
        gate = new SendGate(() =>
        {
            gate.IsAnswerDue = false;
            if (ends++ == 0)
            {
                gate.RequestAnswer();
            }

            return Task.CompletedTask;
        });
        Assert.True(gate.TryEnter());
        gate.IsIntact = true;

        gate.Exit();

        Assert.Equal(2, ends);
        Assert.False(gate.IsAnswerDue);
        Assert.True(gate.TryEnter());
    }

    [Fact]
    public void A_turn_that_ends_in_the_middle_of_a_send_sends_no_answer()
    {
        Assert.True(_gate.TryEnter());
        _gate.RequestAnswer();

        _gate.Exit();

        Assert.Equal(0, _answers);
        Assert.False(_gate.IsOpen);
        Assert.ThrowsAny<IOException>(_gate.ThrowIfNotOpen);
        _gate.RequestAnswer();
        Assert.Equal(0, _answers);
    }
}
