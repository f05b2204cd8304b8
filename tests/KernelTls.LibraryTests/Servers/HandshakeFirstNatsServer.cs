namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents NATS whose clients begin with TLS. Before 2.10 the server always speaks first.</summary>
public sealed class HandshakeFirstNatsServer : NatsServer
{
    protected override bool WantsHandshakeFirst => true;
}
