using System.Net.Sockets;
using System.Reflection;
using Grpc.Net.Client;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests the stream that a gRPC channel puts around the stream of each connection.</summary>
[Trait("host", "yes")]
public sealed class KnownWrapperTests
{
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

    /// <summary>Uses reflection, because an assembly that names a class of KernelTls.Weaving counts as woven.</summary>
    private static object? SocketOf(Stream stream) =>
        typeof(KtlsStream).Assembly.GetType("KernelTls.Weaving.KnownWrapper", throwOnError: true)!.GetMethod("SocketOf")!.Invoke(null, [stream]);

    private static Stream Wrap(Stream inner, List<ReadOnlyMemory<byte>>? held) => (Stream)Activator.CreateInstance(
        typeof(GrpcChannel).Assembly.GetType("Grpc.Net.Client.Balancer.Internal.StreamWrapper", throwOnError: true)!,
        BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic,
        binder: null,
        [inner, (Action<Stream>)(_ => { }), held],
        culture: null)!;
}
