using System.Net.Security;

namespace KernelTls.LoadTest.Streams;

/// <summary>Specifies the work of client and server on a connection. The client selects it by ALPN.</summary>
internal enum StreamScenario
{
    /// <summary>Both ends read and write as fast as they can. A buffer of size 0 disables a direction.</summary>
    ReadWrite,

    /// <summary>Each connection ends after its handshake.</summary>
    Handshake,

    /// <summary>The client sends one request after another.</summary>
    Rps,
}

internal static class StreamProtocols
{
    /// <summary>Gets the protocol by which a client asks the server for the connections that failed there.</summary>
    public static SslApplicationProtocol Failures { get; } = new("Failures");

    /// <summary>Gets the scenarios in their order, and what else a server offers.</summary>
    public static List<SslApplicationProtocol> All { get; } =
        [.. Enum.GetNames<StreamScenario>().Select(n => new SslApplicationProtocol(n)), Failures];

    public static SslApplicationProtocol Of(StreamScenario scenario) => All[(int)scenario];

    public static StreamScenario ScenarioOf(SslApplicationProtocol protocol) => (StreamScenario)All.IndexOf(protocol);
}
