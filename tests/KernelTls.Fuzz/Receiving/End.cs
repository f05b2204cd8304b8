namespace KernelTls.Fuzz.Receiving;

/// <summary>Specifies how a reader ends.</summary>
internal enum End
{
    /// <summary>close_notify: every read returns 0.</summary>
    CloseNotify,

    /// <summary>A FIN without close_notify.</summary>
    Truncated,

    /// <summary>The loss of the connection.</summary>
    Lost,

    /// <summary>An error of OpenSSL.</summary>
    Tls,

    /// <summary>A change of the peer's keys that is not supported.</summary>
    Rekey,

    /// <summary>Too many messages.</summary>
    Flood,

    /// <summary>The disposal of the stream.</summary>
    Disposed,
}
