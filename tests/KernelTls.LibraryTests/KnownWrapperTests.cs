using System.Net.Sockets;
using System.Reflection;
using System.Reflection.Emit;
using Grpc.Net.Client;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.Azure.Amqp.Transport;

namespace KernelTls.LibraryTests;

/// <summary>Tests what KernelTls knows of the streams that libraries put around a socket.</summary>
[Trait("host", "yes")]
public sealed class KnownWrapperTests
{
    private const string GrpcStream = "Grpc.Net.Client.Balancer.Internal.StreamWrapper";

    [Theory]
    [InlineData(null, true)]
    [InlineData(0, true)]
    [InlineData(1, false)]
    public async Task The_socket_under_a_stream_is_used_unless_the_stream_holds_bytes(int? heldParts, bool isUsed)
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        using NetworkStream inner = new(pair.Client);
        List<ReadOnlyMemory<byte>>? held = heldParts is { } count ? [.. Enumerable.Repeat<ReadOnlyMemory<byte>>(new byte[] { 22 }, count)] : null;
        using Stream wrapper = Wrap(inner, held);

        Assert.Same(isUsed ? pair.Client : null, SocketOf(wrapper));
    }

    [Fact]
    public void A_stream_around_something_else_stays_as_it_is()
    {
        using MemoryStream inner = new();
        using Stream wrapper = Wrap(inner, null);

        Assert.Null(SocketOf(wrapper));
    }

    /// <summary>An assembly may be loaded twice, for the application and for a plug-in. The types are not the same.</summary>
    [Theory]
    [InlineData("MailKit", "MailKit.Net.NetworkStream")]
    [InlineData("Grpc.Net.Client", GrpcStream)]
    [InlineData("Microsoft.Data.SqlClient", "Microsoft.Data.SqlClient.ManagedSni.SniNetworkStream")]
    [InlineData("Microsoft.Azure.Amqp", "Microsoft.Azure.Amqp.Transport.TransportStream")]
    public void A_stream_that_only_has_a_known_name_stays_as_it_is(string assembly, string type)
    {
        using Stream stream = (Stream)Activator.CreateInstance(AssemblyBuilder
            .DefineDynamicAssembly(new AssemblyName(assembly), AssemblyBuilderAccess.RunAndCollect)
            .DefineDynamicModule(assembly)
            .DefineType(type, TypeAttributes.Public, typeof(MemoryStream))
            .CreateType())!;

        Assert.Null(SocketOf(stream));
    }

    [Theory]
    [InlineData(-1)]
    [InlineData(0)]
    [InlineData(100)]
    public async Task The_socket_under_AMQP_is_used_unless_its_transport_holds_bytes(int bufferSize)
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        using Stream stream = AmqpPair.StreamOn(AmqpPair.Tcp(pair.Client, bufferSize));
        Assert.Same(pair.Client, SocketOf(stream));

        await pair.Server.SendAsync(new byte[10]);
        await stream.ReadExactlyAsync(new byte[8]).InTime("8 of 10 bytes");
        Assert.Same(bufferSize > 0 ? null : pair.Client, SocketOf(stream));

        await stream.ReadExactlyAsync(new byte[2]).InTime("the other bytes");
        Assert.Same(pair.Client, SocketOf(stream));
    }

    [Fact]
    public async Task AMQP_over_something_else_stays_as_it_is()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        using TlsTransport tls = new(AmqpPair.Tcp(pair.Client, -1), new TlsTransportSettings { TargetHost = "localhost" });
        using Stream stream = AmqpPair.StreamOn(tls);

        Assert.Null(SocketOf(stream));
    }

    /// <summary>Uses reflection, because an assembly that names a class of KernelTls.Weaving counts as woven.</summary>
    private static object? SocketOf(Stream stream) =>
        typeof(KtlsStream).Assembly.GetType("KernelTls.Weaving.KnownWrapper", throwOnError: true)!.GetMethod("SocketOf")!.Invoke(null, [stream]);

    private static Stream Wrap(Stream inner, List<ReadOnlyMemory<byte>>? held) => (Stream)Activator.CreateInstance(
        typeof(GrpcChannel).Assembly.GetType(GrpcStream, throwOnError: true)!,
        BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic,
        binder: null,
        [inner, (Action<Stream>)(_ => { }), held],
        culture: null)!;
}
