namespace KernelTls.IO;

/// <summary>
/// Limits the handshake messages that the peer sends after the handshake, above all KeyUpdates (RFC 8446, section
/// 4.6.3). Used by the reader only.
/// </summary>
/// <remarks>
/// <para>
/// A message costs this end far more than the peer and gives the caller of a read no data. Each message takes a token.
/// Received data fills up to <see cref="Burst"/> tokens, each second adds one up to that number, and each record that
/// this end sends adds one. The last is for peers that count what their keys process, as JSSE does: past the limit they
/// request new keys with each record that they read, until the answer reaches them behind the records that were sent
/// before it. The peer's messages are therefore bounded by this end's own work.
/// </para>
/// <para>
/// Tokens for sent records accumulate up to <see cref="MaxTokens"/>, which bounds the work of a single read.
/// </para>
/// </remarks>
internal struct HandshakeMessageLimiter
{
    /// <summary>The number of messages that may arrive in a row. Servers send one to four tickets at once.</summary>
    public const int Burst = 128;

    /// <summary>
    /// The number of tokens that can accumulate: the records of 1 GiB, more than the buffers of a connection hold.
    /// </summary>
    public const int MaxTokens = 65_536;

    private readonly TimeProvider _time;
    private long _tokens = Burst;
    private long _recordsSent;
    private long _countedUntil;

    /// <summary>Initializes a new instance of the <see cref="HandshakeMessageLimiter"/> struct.</summary>
    /// <param name="time">The clock by which seconds add tokens.</param>
    public HandshakeMessageLimiter(TimeProvider time)
    {
        _time = time;
        _countedUntil = time.GetTimestamp();
    }

    /// <summary>Fills the tokens up to <see cref="Burst"/>, because the peer sent data.</summary>
    public void AddReceivedData() => _tokens = Math.Max(_tokens, Burst);

    /// <summary>Acquires a token for each of <paramref name="messages"/>.</summary>
    /// <param name="messages">The number of messages that arrived.</param>
    /// <param name="recordsSent">The number of records that this end has sent since the connection began.</param>
    /// <returns><see langword="false"/> if the peer has sent too many messages.</returns>
    public bool TryAcquire(int messages, long recordsSent)
    {
        long earned = recordsSent - _recordsSent;
        _recordsSent = recordsSent;

        // Time is not work of this end: a connection that was idle for a day has one burst and no more.
        long byTime = Math.Max(_tokens, Math.Min(Burst, _tokens + SecondsPassed()));
        _tokens = Math.Min(MaxTokens, byTime + earned) - messages;
        return _tokens >= 0;
    }

    private long SecondsPassed()
    {
        long seconds = (long)_time.GetElapsedTime(_countedUntil).TotalSeconds;
        _countedUntil += seconds * _time.TimestampFrequency;
        return seconds;
    }
}
