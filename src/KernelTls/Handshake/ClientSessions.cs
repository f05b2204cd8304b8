using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// The sessions that this process's clients can resume, bounded, oldest first out. Thread-safe. A session is found only for
/// the same host name, the same options and the same own certificate as the connection that it came from.
/// </summary>
/// <remarks>
/// A TLS 1.3 session is handed out once (RFC 8446, appendix C.4): offered on two connections it would link them for an
/// observer. A TLS 1.2 session is handed out until it is no longer good. Whether the peer's certificate is, each resumed
/// connection decides by its own callbacks and policies (<see cref="PeerVerdict"/>).
/// </remarks>
internal sealed class ClientSessions(int capacity)
{
    private const int PerPeer = 8;
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

    /// <summary>Keeps a session. The cache owns it from now on.</summary>
    /// <param name="options">The options of its connection.</param>
    /// <param name="host">The name its peer was verified by.</param>
    /// <param name="session">The session.</param>
    /// <param name="origin">What its connection knew.</param>
    public void Add(TlsContextKey options, string host, SafeTlsSessionHandle session, in SessionOrigin origin)
    {
        Entry entry = new(new Peer(options, host), session, InfoOf(session), origin);
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

    /// <summary>Offers the newest session that is good for this peer in the connection's handshake. False: there is none.</summary>
    /// <param name="options">The options of the new connection.</param>
    /// <param name="host">The name its peer is verified by.</param>
    /// <param name="connection">The connection, before its handshake.</param>
    /// <param name="origin">What the connection knew that the session comes from.</param>
    public bool TryOffer(TlsContextKey options, string host, TlsConnection connection, out SessionOrigin origin)
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
                    origin = newest.Origin;
                    return true;
                }
            }

            origin = default;
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

    /// <summary>Whose session it is.</summary>
    private sealed record Peer(TlsContextKey Options, string Host)
    {
        public bool Equals(Peer? other) =>
            other is not null && Options == other.Options && Host.Equals(other.Host, StringComparison.OrdinalIgnoreCase);

        public override int GetHashCode() => HashCode.Combine(Options, StringComparer.OrdinalIgnoreCase.GetHashCode(Host));
    }

    private sealed class Entry
    {
        public Entry(Peer peer, SafeTlsSessionHandle session, SessionInfo info, in SessionOrigin origin)
        {
            Peer = peer;
            Session = session;
            Info = info;
            Origin = origin;
            Age = new LinkedListNode<Entry>(this);
        }

        public Peer Peer { get; }

        public SafeTlsSessionHandle Session { get; }

        public SessionInfo Info { get; }

        public SessionOrigin Origin { get; }

        public LinkedListNode<Entry> Age { get; }

        /// <summary>Within its life time as OpenSSL and the server state it, and not spoilt by a connection that ended badly.</summary>
        public bool IsGood(DateTimeOffset now)
        {
            long lifetime = Info.TicketLifetimeSeconds > 0
                ? Math.Min(Info.TimeoutSeconds, Info.TicketLifetimeSeconds)
                : Info.TimeoutSeconds;
            return now.ToUnixTimeSeconds() < Info.CreatedSeconds + lifetime && InfoOf(Session).Resumable != 0;
        }
    }
}
