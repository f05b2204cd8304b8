namespace KernelTls.IO;

/// <summary>
/// How many handshake messages the peer may send after the handshake: each costs this end far more than the peer, a KeyUpdate
/// (RFC 8446, section 4.6.3) most of all. So many in a row, as many again after data, one for each second of waiting.
/// </summary>
internal struct MessageAllowance
{
    /// <summary>Servers send one to four tickets at once; whoever changes keys does so between data.</summary>
    public const int Most = 128;

    private int _left = Most;
    private long _since = Environment.TickCount64;

    public MessageAllowance()
    {
    }

    /// <summary>The peer sent data.</summary>
    public void Renew() => _left = Most;

    /// <summary>False: the peer has sent too many.</summary>
    public bool TryTake(int messages)
    {
        const int Second = 1000;
        long seconds = (Environment.TickCount64 - _since) / Second;
        _since += seconds * Second;
        _left = (int)Math.Min(Most, _left + seconds) - messages;
        return _left >= 0;
    }
}
