using Grpc.AspNetCore.Server.Model;
using Grpc.Core;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.LoadTest.Http;

/// <summary>Describes the one gRPC method: a unary call. Its messages are bytes, so no generated code is necessary.</summary>
internal sealed class EchoCall : IServiceMethodProvider<EchoCall.Service>
{
    private static readonly Marshaller<byte[]> s_bytes = Marshallers.Create(message => message, message => message);

    public static Method<byte[], byte[]> Method { get; } = new(MethodType.Unary, "kerneltls.LoadTest", "Echo", s_bytes, s_bytes);

    /// <summary>Adds the services of a server whose responses are this message.</summary>
    public static void AddTo(IServiceCollection services, byte[] response)
    {
        services.AddGrpc();
        services.AddSingleton(new Service(response));
        services.AddSingleton<IServiceMethodProvider<Service>, EchoCall>();
    }

    public static void MapTo(WebApplication application)
    {
        application.UseRouting();
#pragma warning disable ASP0014 // Endpoints mapped on the application itself come after its last middleware, which answers every other request.
        application.UseEndpoints(endpoints => endpoints.MapGrpcService<Service>());
#pragma warning restore ASP0014
    }

    public void OnServiceMethodDiscovery(ServiceMethodProviderContext<Service> context) =>
        context.AddUnaryMethod(Method, [], static (service, _, _) => service.Answer);

    internal sealed class Service(byte[] response)
    {
        public Task<byte[]> Answer { get; } = Task.FromResult(response);
    }
}
