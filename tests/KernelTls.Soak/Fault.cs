namespace KernelTls.Soak;

/// <summary>
/// Specifies an intended fault of a run, which occurs about once in ten seconds, to show that it is detected.
/// </summary>
internal enum Fault
{
    /// <summary>No fault.</summary>
    None,

    /// <summary>Leaks a descriptor.</summary>
    Descriptor,

    /// <summary>Leaks a native connection whose socket is closed.</summary>
    Connection,

    /// <summary>Leaks a connection, open at both ends.</summary>
    Socket,

    /// <summary>Leaks a little memory of each operation.</summary>
    Memory,

    /// <summary>Changes a byte of a response.</summary>
    Byte,

    /// <summary>Sends no response.</summary>
    Hang,
}
