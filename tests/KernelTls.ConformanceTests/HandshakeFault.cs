using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a change that a peer or an attacker makes to one record of a handshake.</summary>
/// <param name="Name">The unique name, to which accepted differences refer.</param>
/// <param name="Bytes">
/// The function that returns the bytes to send before that record or instead of it, a segment each.
/// </param>
internal sealed record HandshakeFault(string Name, Func<TlsPeer, PeerStep, IEnumerable<byte[]>> Bytes)
{
    /// <summary>Gets the handling of the record.</summary>
    public PeerChoice Then { get; init; }

    /// <summary>Gets the event that follows if the peer stops.</summary>
    public FaultEnd End { get; init; }

    /// <summary>Gets the predicate that selects the records of the fault by the name of their step.</summary>
    public Func<string, bool> Concerns { get; init; } = static _ => true;

    /// <summary>Gets the version of the fault, or <see cref="SslProtocols.None"/> for both.</summary>
    public SslProtocols Only { get; init; }

    public bool IsIn(SslProtocols version) => Only == SslProtocols.None || Only == version;

    public override string ToString() => Name;
}
