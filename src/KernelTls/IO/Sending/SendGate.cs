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
/// Each successful Enter is followed by one <see cref="Exit"/>. The turn sets <see cref="IsIntact"/> when nothing is half sent.
/// </para>
/// </remarks>
/// <param name="exiting">
/// Is called at the end of each turn, while the gate is open. The gate stays shut until the task completes, because data under the
/// old key may not follow a KeyUpdate that waits for room. Never throws.
/// </param>
[SuppressMessage("Design", "CA1001", Justification = "Nothing is held outside of the process's memory, and a stream may be closed when its session is gone already.")]
internal sealed class SendGate(Func<Task>? exiting = null)
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
    private volatile State _state;
    private volatile bool _isAnswerDue;
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

    /// <summary>Gets or sets a value that indicates whether the peer waits for a KeyUpdate. Thread-safe.</summary>
    public bool IsAnswerDue
    {
        get => _isAnswerDue;
        set => _isAnswerDue = value;
    }

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

    /// <summary>Ends the turn, and any turn that an answer needs which became due as the gate opened.</summary>
    public void Exit()
    {
        do
        {
            if (!IsIntact && IsOpen)
            {
                _state = State.Broken;
            }

            if (IsOpen && exiting?.Invoke() is { IsCompleted: false } pending)
            {
                _ = ExitAfterAsync(pending);
                return;
            }

            _turn.Release();
        }
        while (TryEnterToAnswer());
    }

    /// <summary>Records that the peer waits for a KeyUpdate. The end of the turn in progress, or of one that begins now, sends it. Thread-safe.</summary>
    public void RequestAnswer()
    {
        _isAnswerDue = true;
        if (TryEnterToAnswer())
        {
            Exit();
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

    private bool Begin(bool entered)
    {
        if (entered)
        {
            IsIntact = false;
        }

        return entered;
    }

    private async Task ExitAfterAsync(Task pending)
    {
        await pending.ConfigureAwait(false);
        Exit();
    }

    /// <summary>Takes a turn that only sends an answer, if one is due.</summary>
    private bool TryEnterToAnswer()
    {
        if (!_isAnswerDue || !IsOpen || !TryEnter())
        {
            return false;
        }

        IsIntact = true;
        return true;
    }
}
