using System.Net.Security;

namespace KernelTls.Lab.Streams;

/// <summary>What client and server do on a connection; the client says which by ALPN.</summary>
internal enum StreamScenario
{
    /// <summary>Both write and read as fast as they can; a buffer of size 0 leaves a direction out.</summary>
    ReadWrite,

    /// <summary>Connections that end after their handshake.</summary>
    Handshake,

    /// <summary>One request after the other.</summary>
    Rps,
}

internal static class StreamProtocols
{
    public static List<SslApplicationProtocol> All { get; } = [.. Enum.GetNames<StreamScenario>().Select(n => new SslApplicationProtocol(n))];

    public static List<SslApplicationProtocol> Of(StreamScenario scenario) => [All[(int)scenario]];

    public static StreamScenario ScenarioOf(SslApplicationProtocol protocol) => (StreamScenario)All.IndexOf(protocol);
}
