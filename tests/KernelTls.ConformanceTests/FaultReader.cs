namespace KernelTls.ConformanceTests;

/// <summary>Specifies how a program reads. The ways take different paths in a stream.</summary>
public enum FaultReader
{
    /// <summary>ReadAsync into 64 KiB.</summary>
    Async,

    /// <summary>ReadAsync of a byte at a time.</summary>
    AsyncByByte,

    /// <summary>An empty ReadAsync before each other one, as in HttpClient and Kestrel.</summary>
    EmptyFirst,

    /// <summary>Read into 64 KiB, with a ReadTimeout.</summary>
    Sync,

    /// <summary>Read of a byte at a time, with a ReadTimeout.</summary>
    SyncByByte,
}
