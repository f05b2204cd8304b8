namespace KernelTls;

/// <summary>Specifies directions of a connection, as seen from this end.</summary>
[Flags]
public enum KtlsDirections
{
    /// <summary>Neither direction.</summary>
    None = 0,

    /// <summary>Data that this end sends (<c>TLS_TX</c>).</summary>
    Send = 1,

    /// <summary>Data that this end receives (<c>TLS_RX</c>).</summary>
    Receive = 2,

    /// <summary>Both directions.</summary>
    Both = Send | Receive,
}
