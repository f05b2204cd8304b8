using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Describes a change that a peer or an attacker makes to the records of an established connection.</summary>
/// <param name="Name">The unique name, to which accepted differences refer.</param>
/// <param name="Bytes">The function that returns the bytes to send, a segment each.</param>
internal sealed record RecordFault(string Name, Func<FaultScene, IEnumerable<byte[]>> Bytes)
{
    /// <summary>Gets the event that follows the bytes.</summary>
    public FaultEnd End { get; init; }

    /// <summary>Gets the version of the fault, or <see cref="SslProtocols.None"/> for both.</summary>
    public SslProtocols Only { get; init; }

    /// <summary>Gets a value that indicates whether the fault takes so long that one reader is enough.</summary>
    public bool IsLong { get; init; }

    /// <summary>
    /// Gets a value that indicates whether the record layer refuses the fault for any reader, so that one reader at
    /// each end is enough.
    /// </summary>
    public bool IsUnauthentic { get; init; }

    public bool IsIn(SslProtocols version) => Only == SslProtocols.None || Only == version;

    public override string ToString() => Name;
}

/// <summary>Specifies how a fault leaves the connection.</summary>
internal enum FaultEnd
{
    /// <summary>Another record of data follows, and then silence.</summary>
    Open,

    /// <summary>Silence.</summary>
    Silence,

    /// <summary>The peer has sent its FIN.</summary>
    Fin,

    /// <summary>The peer has sent a reset.</summary>
    Reset,
}
