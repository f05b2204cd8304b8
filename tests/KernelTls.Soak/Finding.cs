namespace KernelTls.Soak;

/// <summary>Specifies how an operation can go wrong.</summary>
internal enum Finding
{
    /// <summary>It failed without a disturbance, or with an exception that the situation does not explain.</summary>
    Failure,

    /// <summary>Bytes were lost, added, moved or changed.</summary>
    Corruption,

    /// <summary>It exceeded its time limit.</summary>
    Hang,
}
