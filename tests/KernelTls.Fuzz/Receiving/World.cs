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

    private const int LargestRecord = 16 * 1024;

    private int _calls;
    public Choices Choices { get; } = choices;

    public bool Kernel { get; } = kernel;

    public bool CanRekey { get; } = canRekey;

    /// <summary>Gets the number of bytes that the receiver has received, from the socket or from OpenSSL.</summary>
    public long Delivered { get; private set; }

    /// <summary>Gets the position of the first byte that OpenSSL has received and not delivered yet.</summary>
    public long HeldFrom { get; private set; }

    /// <summary>Gets the number of bytes that OpenSSL has received and not delivered yet.</summary>
    public int Held { get; private set; }

    /// <summary>Gets or sets a value that indicates whether the stream was disposed.</summary>
    public bool IsClosed { get; set; }

    /// <summary>Gets or sets a value that indicates whether the kernel has refused a record and reported it. Nothing follows it.</summary>
    public bool IsRefused { get; set; }

    /// <summary>Gets the number of bytes in the socket that precede the refused record.</summary>
    public int BeforeRefused { get; private set; }

    /// <summary>Gets or sets a value that indicates whether the kernel reports the refused record to the next receive.</summary>
    public bool ReportsRefused { get; set; }

    /// <summary>Gets or sets a value that indicates whether a read is in progress.</summary>
    public bool IsReading { get; set; }

    /// <summary>Gets a value that indicates whether another thread acts.</summary>
    public bool IsInterrupted { get; private set; }

    /// <summary>Gets or sets what another thread does. It runs between any two steps of the socket and of OpenSSL.</summary>
    public Action? Interrupt { get; set; }

    /// <summary>Gets the number of bytes that have left the socket.</summary>
    private long Received { get; set; }

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
            throw new FuzzException(broken.Message, broken);
        }
    }

    /// <summary>Fills a part of the buffer with the next bytes of the socket.</summary>
    public int Deliver(Span<byte> buffer)
    {
        int count = buffer.IsEmpty ? 0 : Choices.TakeSize(buffer.Length);
        if (IsRefused)
        {
            count = Math.Min(count, BeforeRefused);
            BeforeRefused -= count;
        }

        Copy(buffer[..count], Received);
        Received += count;
        return count;
    }

    /// <summary>Moves the next bytes of the socket to OpenSSL.</summary>
    public void Hold()
    {
        HeldFrom = Received;
        Held = Choices.TakeSize(LargestRecord);
        if (IsRefused)
        {
            Held = Math.Min(Held, BeforeRefused);
            BeforeRefused -= Held;
        }

        Received += Held;
    }

    /// <summary>Fills the buffer with bytes that OpenSSL holds.</summary>
    public int DeliverHeld(Span<byte> buffer)
    {
        int count = Math.Min(Held, buffer.Length);
        Copy(buffer[..count], HeldFrom);
        HeldFrom += count;
        Held -= count;
        return count;
    }

    /// <summary>Receives bytes that no read gets, as a stream does that waits for the peer's end while it is disposed.</summary>
    public void Discard() => Received += Choices.TakeSize(LargestRecord);

    /// <summary>
    /// Fails a send, as the kernel does after it has refused a record: it reports the record to the send and stores another error for
    /// the next receive. Or the send fails for a reason of its own.
    /// </summary>
    /// <returns>The errno of the send.</returns>
    public int FailSend()
    {
        const int Eio = 5, Einval = 22, Emsgsize = 90;
        if (Lost is null && !IsRefused && Choices.Take(2) == 1)
        {
            IsRefused = true;
            ReportsRefused = true;
            BeforeRefused = Choices.Take(2) * Choices.TakeSize(LargestRecord);
            return Choices.TakeOneOf(Eio, Einval, Emsgsize);
        }

        return Eio;
    }

    /// <summary>Lets another thread act, if the input chooses so.</summary>
    public void Yield()
    {
        if (!IsInterrupted && Interrupt is { } interrupt)
        {
            IsInterrupted = true;
            Exhausted = null;
            try
            {
                interrupt();
            }
            finally
            {
                IsInterrupted = false;
                Exhausted = null;
            }
        }
    }

    /// <summary>Returns the byte of the stream at a position.</summary>
    public static byte ByteAt(long position) => (byte)((position * 31) + (position >> 8) + (position >> 16));

    /// <summary>Counts a call. None may follow the end, and the number without progress is limited.</summary>
    public void Enter(string what)
    {
        Yield();
        if (End is not null && !IsClosed)
        {
            throw Broken = new FuzzException($"{what} was called after the end, which is {End}.");
        }

        if (IsInterrupted && IsReading && what is not nameof(ModelConnection.ReceiveFailed))
        {
            throw Broken = new FuzzException($"{what} is called while a read is in progress, which may receive at the same time.");
        }

        // One call too many does no harm where nothing is waited for.
        if (what == Exhausted && !IsInterrupted)
        {
            throw Broken = new FuzzException($"{what} is asked again, though it said that nothing is there.");
        }

        if (IsRefused && !ReportsRefused && BeforeRefused == 0 && what is (nameof(ModelSocket.Start) or nameof(ModelSocket.WaitReadable)))
        {
            throw Broken = new FuzzException($"{what} waits, though the kernel has refused a record.");
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

    private void Copy(Span<byte> buffer, long position)
    {
        for (int i = 0; i < buffer.Length; i++)
        {
            buffer[i] = ByteAt(position + i);
        }

        Delivered += buffer.Length;
        _calls = 0;
        Messages = 0;
    }
}
