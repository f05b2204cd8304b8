using Grpc.AspNetCore.Server.Model;
using Grpc.Core;
using Grpc.Net.Client;
using KernelTls.Bench.Modes;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Makes unary gRPC calls with Grpc.Net.Client and Grpc.AspNetCore. Request and response each contain one message of
/// the given size.
/// </summary>
internal sealed class GrpcLoad : ConcurrentExchange
{
    private readonly byte[] _message;
    private GrpcChannel? _channel;
    private CallInvoker _invoker = null!;

    public GrpcLoad(Mode mode, BenchCertificates certificates, HttpExchangeKind kind, int operationsPerRound)
        : base(mode, certificates, kind, operationsPerRound) => _message = new byte[kind.RequestSize];

    public override async ValueTask DisposeAsync()
    {
        _channel?.Dispose();
        await base.DisposeAsync();
    }

    protected override WebApplication Build(WebApplicationBuilder builder)
    {
        builder.Services.AddGrpc();
        builder.Services.AddSingleton(this);
        builder.Services.AddSingleton<IServiceMethodProvider<EchoService>, EchoMethod>();
        WebApplication server = builder.Build();
        server.MapGrpcService<EchoService>();
        return server;
    }

    protected override async Task RequestAsync(byte[] buffer)
    {
        if (_channel is null)
        {
            _channel = GrpcChannel.ForAddress(Server, new GrpcChannelOptions { HttpClient = Client });
            _invoker = _channel.CreateCallInvoker();
        }

        byte[] answer = await _invoker.AsyncUnaryCall(EchoMethod.Echo, null, default, _message);
        if (answer.Length != _message.Length)
        {
            throw new BenchFailedException($"{answer.Length} bytes of a message of {_message.Length}");
        }
    }

    /// <summary>Answers with the request's message.</summary>
    internal sealed class EchoService(GrpcLoad load)
    {
        public async Task<byte[]> EchoAsync(byte[] message)
        {
            await load.ArriveAsync();
            return message;
        }
    }

    /// <summary>
    /// Describes the only method of the service. Its messages are bytes, so no generated code is necessary.
    /// </summary>
    private sealed class EchoMethod : IServiceMethodProvider<EchoService>
    {
        private static readonly Marshaller<byte[]> s_bytes = Marshallers.Create(message => message, message => message);

        public static Method<byte[], byte[]> Echo { get; } = new(MethodType.Unary, "kerneltls.Bench", nameof(Echo), s_bytes, s_bytes);

        public void OnServiceMethodDiscovery(ServiceMethodProviderContext<EchoService> context) =>
            context.AddUnaryMethod(Echo, [], static (service, message, _) => service.EchoAsync(message));
    }
}
