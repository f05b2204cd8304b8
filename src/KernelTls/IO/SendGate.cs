using System.Diagnostics.CodeAnalysis;

namespace KernelTls.IO;

/// <summary>
/// Lets one sender at a time use a connection. Data and OpenSSL's own records (KeyUpdate, close_notify) take turns, so that no key
/// changes while data is on its way to the kernel.
/// </summary>
/// <remarks>
/// <para>
/// States: Open → Closed (close_notify was sent), Spent (the same, because the key reached its limit) or Broken (a turn ended in the
/// middle of a send; what the kernel took of it is unknown, so nothing may follow).
/// </para>
/// <para>
/// Each successful Enter is followed by one <see cref="AnswerAndExit"/>. The turn sets <see cref="IsIntact"/> when nothing is half sent.
/// </para>
/// </remarks>
[SuppressMessage("Design", "CA1001", Justification = "Nothing is held outside of the process's memory, and a stream may be closed when its session is gone already.")]
internal sealed class SendGate
{
    private enum State
    {
        Open,
        Closed,
        Spent,
        Broken,
    }

    private readonly SemaphoreSlim _turn = new(1, 1);
    private readonly CancellationTokenSource _disposed = new();
    private SendKeys? _keys;
    private volatile State _state;
    private Exception? _failure;

    /// <summary>Gets the token that is cancelled when the stream is disposed: it ends all waits.</summary>
    public CancellationToken Disposed => _disposed.Token;

    /// <summary>Gets a value that indicates whether the stream was disposed.</summary>
    public bool IsDisposed => _disposed.IsCancellationRequested;

    /// <summary>Gets a value that indicates whether data may be sent.</summary>
    public bool IsOpen => _state == State.Open;

    /// <summary>Gets a value that indicates whether close_notify was sent: nothing can follow.</summary>
    public bool IsClosed => _state is State.Closed or State.Spent;

    /// <summary>Gets the failure of the connection after which nothing can be sent, or <see langword="null"/>.</summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    /// <summary>Gets or sets a value that indicates whether the present turn leaves nothing half sent. False when a turn begins.</summary>
    public bool IsIntact { get; set; }

    /// <summary>Attaches the keys that the end of each turn serves.</summary>
    public void Attach(SendKeys keys) => _keys = keys;

    /// <summary>Takes a turn if no other sender has one.</summary>
    public bool TryEnter() => Enter(TimeSpan.Zero);

    /// <summary>Blocks until it has a turn. Returns <see langword="false"/> when the time is over.</summary>
    public bool Enter(TimeSpan limit) => Begin(_turn.Wait(limit, CancellationToken.None));

    /// <summary>Waits for a turn.</summary>
    public async ValueTask EnterAsync(CancellationToken cancellationToken)
    {
        await _turn.WaitAsync(cancellationToken).ConfigureAwait(false);
        Begin(true);
    }

    /// <summary>
    /// Sends a KeyUpdate that became due during the turn, and ends the turn. If the send buffer is full, the gate stays shut
    /// until the KeyUpdate is sent, because data under the old key may not follow it.
    /// </summary>
    public void AnswerAndExit()
    {
        if (!IsIntact && IsOpen)
        {
            _state = State.Broken;
        }

        if (IsOpen)
        {
            _keys?.CheckForKeyUpdateRequests();
        }

        if (IsAnswerDue)
        {
            _ = AnswerAndReleaseAsync();
        }
        else
        {
            Release();
        }
    }

    /// <summary>Ends the last turn, in which the stream was closed. Sends nothing.</summary>
    public void ExitClosed() => _turn.Release();

    /// <summary>Records that close_notify was sent, or is being sent. No other record follows.</summary>
    public void Close() => _state = State.Closed;

    /// <summary>Records that close_notify was sent because the key has reached its limit.</summary>
    public void CloseSpent() => _state = State.Spent;

    /// <summary>Records that the last send may be incomplete.</summary>
    public void Break() => _state = State.Broken;

    /// <summary>Ends the sending half with a failure, unless it has one. Nothing may follow a fatal alert, sent or received (RFC 8446, section 6.2).</summary>
    public void Abandon(Exception failure)
    {
        _ = Interlocked.CompareExchange(ref _failure, failure, null);
        _state = State.Broken;
    }

    /// <summary>Ends all waits, because the stream is disposed.</summary>
    public void EndWaits() => _disposed.Cancel();

    /// <summary>Ends all waits like <see cref="EndWaits"/>, but continues the waiting operations on other threads.</summary>
    public Task EndWaitsAsync() => _disposed.CancelAsync();

    /// <summary>Throws if the connection has failed. A send in several parts calls this before each part.</summary>
    public void ThrowIfAbandoned()
    {
        if (Failure is { } failure)
        {
            throw failure;
        }
    }

    /// <summary>Throws if nothing can be sent.</summary>
    public void ThrowIfNotOpen()
    {
        ThrowIfAbandoned();
        switch (_state)
        {
            case State.Spent:
                throw TlsErrors.RecordLimit();
            case State.Closed:
                throw new InvalidOperationException("Not possible after close_notify was sent by ShutdownAsync.");
            case State.Broken:
                throw TlsErrors.Broken();
        }
    }

    private bool IsAnswerDue => IsOpen && _keys is { IsAnswerDue: true };

    private bool Begin(bool entered)
    {
        if (entered)
        {
            IsIntact = false;
        }

        return entered;
    }

    private async Task AnswerAndReleaseAsync()
    {
        await _keys!.AnswerAsync().ConfigureAwait(false);
        Release();
    }

    /// <summary>Opens the gate, and then checks again: a KeyUpdate that became due just before would otherwise wait for the next turn.</summary>
    private void Release()
    {
        _turn.Release();
        if (IsAnswerDue && TryEnter())
        {
            IsIntact = true;
            AnswerAndExit();
        }
    }
}
