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
    public static List<SslApplicationProtocol> All { get; } = [.. Enum.GetNames<StreamScenario>().Select(n => new SslApplicationProtocol(n))];

    public static List<SslApplicationProtocol> Of(StreamScenario scenario) => [All[(int)scenario]];

    public static StreamScenario ScenarioOf(SslApplicationProtocol protocol) => (StreamScenario)All.IndexOf(protocol);
}
