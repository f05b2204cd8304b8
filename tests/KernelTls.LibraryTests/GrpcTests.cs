using Grpc.AspNetCore.Server.Model;
using Grpc.Core;
using Grpc.Net.Client;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.DependencyInjection.Extensions;

namespace KernelTls.LibraryTests;

/// <summary>Tests Grpc.Net.Client, whose channel creates its own handler, with Grpc.AspNetCore.</summary>
[Trait("host", "yes")]
public sealed class GrpcTests() : LibraryTest("Grpc.Net.Client", "")
{
    private const int LargeSize = 3_000_001;

    private WebServer _server = null!;

    [Fact]
    public async Task Many_small_and_a_large_message_on_one_connection()
    {
        using GrpcChannel channel = Channel();
        CallInvoker calls = channel.CreateCallInvoker();
        for (int i = 0; i < 100; i++)
        {
            byte[] answer = await calls.AsyncUnaryCall(EchoMethod.Echo, null, default, BitConverter.GetBytes(i)).ResponseAsync.InTime("an answer");
            Assert.Equal(i, BitConverter.ToInt32(answer));
        }

        byte[] large = await calls.AsyncUnaryCall(EchoMethod.Echo, null, default, Pattern.Take(LargeSize)).ResponseAsync.InTime("the large answer");
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        AssertOneConnectionServed();
        Assert.Equal(2 * _server.Connections, Handshakes);
    }

    [Fact]
    public async Task A_cancelled_call_leaves_a_channel_that_works_and_connects_again_when_the_server_has_restarted()
    {
        using GrpcChannel channel = Channel();
        CallInvoker calls = channel.CreateCallInvoker();
        using CancellationTokenSource cancellation = new();
        using AsyncUnaryCall<byte[]> waiting = calls.AsyncUnaryCall(EchoMethod.Echo, null, new CallOptions(cancellationToken: cancellation.Token), []);
        await EchoService.Waiting.WaitAsync().InTime("the call at the server");
        await cancellation.CancelAsync();
        RpcException cancelled = await Assert.ThrowsAsync<RpcException>(() => waiting.ResponseAsync).InTime("the cancelled call");
        Assert.Equal(StatusCode.Cancelled, cancelled.StatusCode);
        await AssertWorksAsync(calls);
        AssertOneConnectionServed();

        int before = _server.Connections;
        await _server.StopAsync();
        await _server.StartAsync();
        try
        {
            await AssertWorksAsync(calls);
        }
        catch (RpcException e) when (e.StatusCode == StatusCode.Unavailable)
        {
            // The server reset the connection, and the call was sent before HttpClient noticed. This does not depend on the stream:
            // it happened after 13 of 500 restarts with the stock stream, and after 17 with kernel TLS (cell trixie-7.2-uml).
            await AssertWorksAsync(calls);
        }

        Assert.InRange(_server.Connections, before + 1, before + 2);
    }

    protected override async Task StartAsync() => _server = await WebServer.StartedAsync(
        services =>
        {
            services.AddGrpc(o => (o.MaxReceiveMessageSize, o.MaxSendMessageSize) = (null, null));
            services.AddSingleton<IServiceMethodProvider<EchoService>, EchoMethod>();
        },
        application => application.MapGrpcService<EchoService>());

    protected override async Task StopAsync() => await _server.DisposeAsync();

    private GrpcChannel Channel() => GrpcChannel.ForAddress(_server.Address);

    /// <summary>Asserts that no call has ended a connection, and that the channel has opened one, or two by HttpClient's race.</summary>
    /// <remarks>
    /// A channel permits several HTTP/2 connections. HttpClient gives a new connection to the request that waits for it before it puts the
    /// connection into its pool. A request between the two finds the pool empty and opens another connection. This does not depend on the
    /// stream: beside a load it happened in 1 of 2,000 runs with the stock stream.
    /// </remarks>
    private void AssertOneConnectionServed()
    {
        Assert.InRange(_server.Connections, 1, 2);
        Assert.Equal(0, _server.Ended);
    }

    private static async Task AssertWorksAsync(CallInvoker calls)
    {
        CallOptions options = new CallOptions(deadline: DateTime.UtcNow + Limits.Wait).WithWaitForReady();
        Assert.Equal([7], await calls.AsyncUnaryCall(EchoMethod.Echo, null, options, [7]).ResponseAsync.InTime("an answer"));
    }

    /// <summary>Answers with the request's message. An empty message is not answered until the caller cancels.</summary>
    internal sealed class EchoService
    {
        public static SemaphoreSlim Waiting { get; } = new(0);

        public static async Task<byte[]> EchoAsync(byte[] message, CancellationToken cancellationToken)
        {
            if (message.Length == 0)
            {
                Waiting.Release();
                await Task.Delay(Limits.Wait, cancellationToken);
            }

            return message;
        }
    }

    /// <summary>Describes the service's only method. Its messages are bytes, so that no code is generated.</summary>
    private sealed class EchoMethod : IServiceMethodProvider<EchoService>
    {
        private static readonly Marshaller<byte[]> s_bytes = Marshallers.Create(message => message, message => message);

        public static Method<byte[], byte[]> Echo { get; } = new(MethodType.Unary, "kerneltls.Tests", nameof(Echo), s_bytes, s_bytes);

        public void OnServiceMethodDiscovery(ServiceMethodProviderContext<EchoService> context) =>
            context.AddUnaryMethod(Echo, [], static (_, message, call) => EchoService.EchoAsync(message, call.CancellationToken));
    }
}
