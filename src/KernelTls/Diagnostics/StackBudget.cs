namespace KernelTls.Diagnostics;

/// <summary>
/// Decides which handshakes are worth a look at the stack: one a second, and as many at once as seconds have passed without one, up to
/// ten, because an application opens its connections at its start. A peer that was looked at waits, so that frequent connections leave
/// the looks to rare ones. Thread-safe.
/// </summary>
/// <param name="time">The clock.</param>
internal sealed class StackBudget(TimeProvider time)
{
    /// <summary>The number of looks that can be saved up.</summary>
    public const int Savings = 10;

    private const int PeerCapacity = 64;
    private static readonly TimeSpan s_price = TimeSpan.FromSeconds(1);
    private static readonly TimeSpan s_pauseOfPeer = TimeSpan.FromSeconds(30);

    private readonly Lock _lock = new();
    private readonly Dictionary<(bool IsServer, string Host), long> _peers = [];
    private TimeSpan _saved = s_price * Savings;
    private long _last = time.GetTimestamp();

    /// <summary>Returns whether the stack of this handshake may be captured now.</summary>
    public bool TryTake(bool isServer, string targetHost)
    {
        lock (_lock)
        {
            long now = time.GetTimestamp();
            bool isKnown = _peers.TryGetValue((isServer, targetHost), out long looked);
            if (isKnown && time.GetElapsedTime(looked, now) < s_pauseOfPeer)
            {
                return false;
            }

            TimeSpan saved = _saved + time.GetElapsedTime(_last, now);
            _saved = saved < s_price * Savings ? saved : s_price * Savings;
            _last = now;
            if (_saved < s_price)
            {
                return false;
            }

            _saved -= s_price;
            if (!isKnown && _peers.Count == PeerCapacity)
            {
                _peers.Clear();
            }

            _peers[(isServer, targetHost)] = now;
            return true;
        }
    }
}
