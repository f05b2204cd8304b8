using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.Loader;
using System.Security.Authentication;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>
/// Represents Kestrel's experimental transport DirectTls, which runs OpenSSL on the socket, at the server's end. The
/// client is the stock one.
/// </summary>
/// <remarks>
/// No package has this transport. eng/bench --directtls takes its assembly, as you built it for .NET 11. Its
/// members are bound by name.
/// </remarks>
internal sealed class DirectTlsMode : SslStreamMode
{
    private const string Namespace = "Microsoft.AspNetCore.Server.Kestrel.Transport.DirectTls";

    private static readonly string s_path = Path.Combine(AppContext.BaseDirectory, Namespace + ".dll");

    private readonly Assembly _assembly;
    private readonly IPEndPoint _endPoint;

    /// <exception cref="BenchFailedException">The assembly is not there, or the runtime does not support it.</exception>
    public DirectTlsMode(BenchCertificates certificates, bool resume)
        : base(certificates, resume)
    {
        if (!IsSupported)
        {
            throw new BenchFailedException(
                $"{ModeTable.DirectTls}: expected {Namespace}.dll and .NET 11: give the assembly by --directtls FILE, with --runtime 11");
        }

        _assembly = AssemblyLoadContext.Default.LoadFromAssemblyPath(s_path);
        object options = Create("DirectTlsEndpointOptions");
        Set(options, "ServerCertificate", certificates.Server);
        Set(options, "SslProtocols", SslProtocols.Tls13);
        _endPoint = (IPEndPoint)Create("DirectTlsEndpoint", IPAddress.Loopback, 0, options);
    }

    public static bool IsSupported => SocketSession.IsSupported && File.Exists(s_path);

    public override string Name => ModeTable.DirectTls;

    public override bool ResumesHttp => false;

    public override IPEndPoint EndPoint => _endPoint;

    public override void ConfigureServer(IWebHostBuilder server)
    {
        MethodInfo use = _assembly.GetType("Microsoft.AspNetCore.Hosting.WebHostBuilderDirectTlsExtensions", throwOnError: true)!
            .GetMethods(BindingFlags.Public | BindingFlags.Static)
            .Single(method => method.GetParameters() is [{ } only] && only.ParameterType == typeof(IWebHostBuilder));
        use.Invoke(null, [server]);
    }

    /// <summary>Does nothing, because the endpoint has the TLS options and the transport performs TLS.</summary>
    public override void ConfigureEndpoint(ListenOptions endpoint)
    {
    }

    public override Task<Stream> ConnectAsync(Socket socket) => throw new NotSupportedException();

    public override Task<Stream> AcceptAsync(Socket socket) => throw new NotSupportedException();

    private object Create(string type, params object[] arguments) =>
        Activator.CreateInstance(_assembly.GetType($"{Namespace}.{type}", throwOnError: true)!, arguments)!;

    private static void Set(object options, string property, object value) =>
        options.GetType().GetProperty(property)!.SetValue(options, value);
}
