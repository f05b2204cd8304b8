using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// Stores the sessions that clients in this process can resume. Bounded; removes the oldest sessions first.
/// Thread-safe.
/// </summary>
/// <remarks>
/// A session is returned only for the same host name, the same options and the same client certificate as the
/// connection that it came from. A TLS 1.3 session is used once (RFC 8446, appendix C.4): offered on two connections it
/// would let an observer link them. A TLS 1.2 session is used until it is no longer valid. Each resumed connection
/// validates the peer's certificate by its own callbacks and policies (<see cref="CachedValidationResult"/>).
/// </remarks>
internal sealed class ClientSessions(int capacity)
{
    /// <summary>The number of sessions per peer: a busy client opens that many connections at a time, and in TLS 1.3 each needs another session.</summary>
    private const int PerPeer = 128;

    private const int Tls13 = 0x0304;

    private readonly Lock _lock = new();
    private readonly Dictionary<Peer, LinkedList<Entry>> _byPeer = [];
    private readonly LinkedList<Entry> _byAge = new();

    public static ClientSessions Shared { get; } = new(Resumption.ClientSessions);

    public int Count
    {
        get
        {
            lock (_lock)
            {
                return _byAge.Count;
            }
        }
    }

    /// <summary>Adds a session and takes ownership of it.</summary>
    /// <param name="options">The options of the connection that the session comes from.</param>
    /// <param name="host">The name by which the peer of that connection was verified.</param>
    /// <param name="session">The session.</param>
    /// <param name="metadata">The facts about that connection that the session does not contain.</param>
    public void Add(TlsContextKey options, string host, SafeTlsSessionHandle session, in SessionMetadata metadata)
    {
        Entry entry = new(new Peer(options, host), session, InfoOf(session), metadata);
        lock (_lock)
        {
            if (!_byPeer.TryGetValue(entry.Peer, out LinkedList<Entry>? sessions))
            {
                _byPeer[entry.Peer] = sessions = new LinkedList<Entry>();
            }

            sessions.AddLast(entry);
            _byAge.AddLast(entry.Age);
            if (sessions.Count > PerPeer)
            {
                Remove(sessions.First!.Value).Dispose();
            }
            else if (_byAge.Count > capacity)
            {
                Remove(_byAge.First!.Value).Dispose();
            }
        }
    }

    /// <summary>Offers the newest valid session for this peer in the connection's handshake.</summary>
    /// <param name="options">The options of the new connection.</param>
    /// <param name="host">The name by which its peer is verified.</param>
    /// <param name="connection">The connection, before its handshake.</param>
    /// <param name="metadata">The facts about the connection that the session comes from.</param>
    /// <returns>Whether a session was offered.</returns>
    public bool TryOffer(TlsContextKey options, string host, TlsConnection connection, out SessionMetadata metadata)
    {
        lock (_lock)
        {
            while (_byPeer.TryGetValue(new Peer(options, host), out LinkedList<Entry>? sessions))
            {
                Entry newest = sessions.Last!.Value;
                bool isGood = newest.IsGood(DateTimeOffset.UtcNow);
                if (isGood)
                {
                    connection.UseSession(newest.Session);
                }

                if (!isGood || newest.Info.ProtocolVersion >= Tls13)
                {
                    Remove(newest).Dispose();
                }

                if (isGood)
                {
                    metadata = newest.Metadata;
                    return true;
                }
            }

            metadata = default;
            return false;
        }
    }

    private SafeTlsSessionHandle Remove(Entry entry)
    {
        LinkedList<Entry> sessions = _byPeer[entry.Peer];
        sessions.Remove(entry);
        if (sessions.Count == 0)
        {
            _byPeer.Remove(entry.Peer);
        }

        _byAge.Remove(entry.Age);
        return entry.Session;
    }

    private static unsafe SessionInfo InfoOf(SafeTlsSessionHandle session)
    {
        SessionInfo info;
        return KtlsNative.KtlsNative_SessionInfo(session, &info) == 0 ? info : default;
    }

    /// <summary>Identifies the connections that may resume a session.</summary>
    private sealed record Peer(TlsContextKey Options, string Host)
    {
        public bool Equals(Peer? other) =>
            other is not null && Options == other.Options && Host.Equals(other.Host, StringComparison.OrdinalIgnoreCase);

        public override int GetHashCode() => HashCode.Combine(Options, StringComparer.OrdinalIgnoreCase.GetHashCode(Host));
    }

    private sealed class Entry
    {
        public Entry(Peer peer, SafeTlsSessionHandle session, SessionInfo info, in SessionMetadata metadata)
        {
            Peer = peer;
            Session = session;
            Info = info;
            Metadata = metadata;
            Age = new LinkedListNode<Entry>(this);
        }

        public Peer Peer { get; }

        public SafeTlsSessionHandle Session { get; }

        public SessionInfo Info { get; }

        public SessionMetadata Metadata { get; }

        public LinkedListNode<Entry> Age { get; }

        /// <summary>
        /// Returns whether the session is within the lifetime given by OpenSSL and the server, and was not invalidated
        /// by a connection that failed.
        /// </summary>
        public bool IsGood(DateTimeOffset now)
        {
            long lifetime = Info.TicketLifetimeSeconds > 0
                ? Math.Min(Info.TimeoutSeconds, Info.TicketLifetimeSeconds)
                : Info.TimeoutSeconds;
            return now.ToUnixTimeSeconds() < Info.CreatedSeconds + lifetime && InfoOf(Session).Resumable != 0;
        }
    }
}
