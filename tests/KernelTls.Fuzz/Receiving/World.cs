using System.Net.Sockets;

namespace KernelTls.Fuzz.Receiving;

/// <summary>
/// Tracks what a modelled connection has done so far, and the result that the reader must get from it. The delivered
/// bytes are those of a known stream, so that a lost, duplicated or moved one is detected.
/// </summary>
internal sealed class World(Choices choices, bool kernel, bool canRekey)
{
    /// <summary>
    /// The number of calls that the receiver may make without progress, far more than any input has choices.
    /// </summary>
    private const int MostCalls = 5_000;

    private int _calls;

    public Choices Choices { get; } = choices;

    public bool Kernel { get; } = kernel;

    public bool CanRekey { get; } = canRekey;

    /// <summary>Gets the number of bytes delivered to the receiver.</summary>
    public long Delivered { get; private set; }

    /// <summary>Gets or sets the number of messages since the last data.</summary>
    public int Messages { get; set; }

    /// <summary>Gets the error that ended the connection.</summary>
    public SocketError? Lost { get; private set; }

    /// <summary>Gets how the reader must end, once that is determined.</summary>
    public End? End { get; private set; }

    /// <summary>
    /// Gets or sets the source that has just reported that nothing has arrived, and must not be called again before
    /// another one.
    /// </summary>
    public string? Exhausted { get; set; }

    /// <summary>Gets or sets the token of the current read.</summary>
    public CancellationTokenSource? Cancellation { get; set; }

    /// <summary>Gets or sets a value that indicates whether the wait of a blocking read timed out.</summary>
    public bool WaitedInVain { get; set; }

    /// <summary>Gets or sets a violation that occurred in a place from which no exception can propagate.</summary>
    public FuzzException? Broken { get; set; }

    /// <summary>Throws a violation that occurred in such a place.</summary>
    public void ThrowIfBroken()
    {
        if (Broken is { } broken)
        {
            throw broken;
        }
    }

    /// <summary>Fills a part of the buffer with the next bytes of the stream.</summary>
    public int Deliver(Span<byte> buffer)
    {
        int count = buffer.IsEmpty ? 0 : Choices.TakeSize(buffer.Length);
        for (int i = 0; i < count; i++)
        {
            buffer[i] = ByteAt(Delivered++);
        }

        _calls = 0;
        Messages = 0;
        return count;
    }

    /// <summary>Returns the byte of the stream at a position.</summary>
    public static byte ByteAt(long position) => (byte)((position * 31) + (position >> 8) + (position >> 16));

    /// <summary>Counts a call. None may follow the end, and the number without progress is limited.</summary>
    public void Enter(string what)
    {
        if (End is not null)
        {
            throw Broken = new FuzzException($"{what} was called after the end, which is {End}.");
        }

        if (what == Exhausted)
        {
            throw Broken = new FuzzException($"{what} is asked again, though it said that nothing is there.");
        }

        if (Lost is not null && what is (nameof(ModelSocket.Start) or nameof(ModelSocket.WaitReadable)))
        {
            throw Broken = new FuzzException($"{what} waits, though the connection is lost.");
        }

        Exhausted = null;
        if (++_calls > MostCalls)
        {
            throw Broken = new FuzzException($"The receiver spins: {what} is call {_calls} without a byte.");
        }
    }

    /// <summary>Notes an error of a lost connection. The reader must get the first one in the end.</summary>
    public void Lose(SocketError error)
    {
        if (!Kernel || Lost is not null || error == SocketError.OperationAborted)
        {
            Settle(Receiving.End.Lost);
            Lost ??= error;
            return;
        }

        Lost = error;
    }

    /// <summary>Determines how the reader must end.</summary>
    public void Settle(End end) => End ??= end;
}
