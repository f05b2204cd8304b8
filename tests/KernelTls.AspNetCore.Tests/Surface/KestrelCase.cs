using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Authentication.ExtendedProtection;
using System.Text.RegularExpressions;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Describes a connection to Kestrel, whose features and log are compared.</summary>
/// <param name="Name">The name.</param>
/// <param name="Version">The TLS version.</param>
/// <param name="IsHttp2">Whether the client offers HTTP/2 instead of HTTP/1.1.</param>
internal sealed partial record KestrelCase(string Name, SslProtocols Version, bool IsHttp2)
{
    /// <summary>The members that differ from connection to connection.</summary>
    private static readonly string[] s_volatile = ["ConnectionId", "TraceIdentifier", "RequestId", "Id", "LocalPort", "RemotePort", "TraceParent", "Activity"];

    /// <summary>The logs of the transport and of HTTP/2, whose order and content depend on which end closes first.</summary>
    private static readonly string[] s_notCompared =
        ["Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets", "Microsoft.AspNetCore.Server.Kestrel.Http2"];

    /// <summary>Gets the action that changes the endpoint.</summary>
    public Action<HttpsConnectionAdapterOptions>? Https { get; init; }

    /// <summary>Gets the action that changes the client.</summary>
    public Action<SslClientAuthenticationOptions>? Client { get; init; }

    /// <summary>Gets what the client does instead of a handshake.</summary>
    public Func<Socket, Task>? RawClient { get; init; }

    public override string ToString() =>
        $"HTTP/{(IsHttp2 ? "2" : "1.1")}, {(Version == SslProtocols.Tls12 ? "TLS 1.2" : "TLS 1.3")}, {Name}";

    /// <summary>Runs the case and returns what the application and the log show.</summary>
    public async Task<Surface> RunAsync(TlsMode mode)
    {
        Surface surface = new();
        IFeatureCollection? features = null;
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(
            mode,
            https: https =>
            {
                https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
                Https?.Invoke(https);
            },
            listen: endpoint => endpoint.Use(next => async connection =>
            {
                features = connection.Features;
                try
                {
                    await next(connection);
                }
                finally
                {
                    DescribeFeatures(surface, "connection, ended: ", connection.Features);
                    ended.TrySetResult();
                }
            }),
            application: application => application.Use(async (HttpContext context, RequestDelegate next) =>
            {
                DescribeFeatures(surface, "connection: ", features!);
                DescribeFeatures(surface, "request: ", context.Features);
                DescribeMembers(surface, "request: HttpContext.Connection", typeof(ConnectionInfo), context.Connection);
                await next(context);
            }));
        server.FailsOnPurpose = true;
        await RequestAsync(server);
        await ended.Task.InTime($"{this}: the end of the connection");
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", $"{this}: the connection to stop");
        foreach (Server.Log.Entry entry in server.Events.Entries
            .SkipWhile(e => e.Id.Name != "ConnectionAccepted").Where(e => !s_notCompared.Contains(e.Category)))
        {
            surface.Add($"log of {entry.Category}", $"{entry.Level} {entry.Id.Name}: {WithoutIds(entry.Message)}{Failure(entry.Exception)}");
        }

        return surface;

        static string Failure(Exception? e) => e is null ? "" : $" ({SurfaceText.Types(e)})";
    }

    private static void DescribeFeatures(Surface surface, string prefix, IFeatureCollection features)
    {
        foreach ((Type type, object feature) in features.Where(f => f.Key.IsPublic).OrderBy(f => f.Key.Name, StringComparer.Ordinal))
        {
            DescribeMembers(surface, $"{prefix}{type.Name}", type, feature);
        }
    }

    private static void DescribeMembers(Surface surface, string prefix, Type type, object feature)
    {
        surface.Add(prefix, "present");
        foreach (PropertyInfo property in type.GetProperties().Where(p => p.GetIndexParameters().Length == 0))
        {
            string value = SurfaceText.Answer(() => property.GetValue(feature));
            surface.Add($"{prefix}.{property.Name}", s_volatile.Contains(property.Name) && value != "null" ? "present" : WithoutIds(value));
        }

        foreach (MethodInfo method in type.GetMethods().Where(m => !m.IsSpecialName && type == typeof(ITlsConnectionFeature)))
        {
            switch (method.Name)
            {
                case nameof(ITlsConnectionFeature.GetClientCertificateAsync):
                    surface.Ask($"{prefix}.{method.Name}", () => ((ITlsConnectionFeature)feature).GetClientCertificateAsync(default).IsCompleted);
                    break;
                case "TryGetChannelBindingBytes":
                    foreach (ChannelBindingKind kind in Enum.GetValues<ChannelBindingKind>())
                    {
                        surface.Ask($"{prefix}.{method.Name}({kind})", () =>
                        {
                            object?[] arguments = [kind, null];
                            return $"{method.Invoke(feature, arguments)} {(arguments[1] is ReadOnlyMemory<byte> bytes ? bytes.Length : 0)} bytes";
                        });
                    }

                    break;
                default:
                    Assert.Fail($"decide how to compare {type.Name}.{method.Name}");
                    break;
            }
        }
    }

    private static string WithoutIds(string text) => Id().Replace(text, "…");

    private async Task RequestAsync(Server server)
    {
        if (RawClient is not null)
        {
            using Socket socket = await server.ConnectSocketAsync();
            await RawClient(socket).InTime($"{this}: the client's part");
            return;
        }

        if (IsHttp2)
        {
            using HttpClient client = Server.CreateClient("2.0", handler =>
            {
                handler.SslOptions.EnabledSslProtocols = Version;
                Client?.Invoke(handler.SslOptions);
            });
            await client.GetStringAsync(new Uri(server.Https, "/bytes/10")).InTime($"{this}: the response");
            return;
        }

        // HttpClient would repeat a request whose connection is refused.
        try
        {
            await using SslStream client = new(new NetworkStream(await server.ConnectSocketAsync(), ownsSocket: true));
            SslClientAuthenticationOptions options = Handshakes.ClientOptions(Version);
            Client?.Invoke(options);
            await client.AuthenticateAsClientAsync(options).InTime($"{this}: the client's handshake");
            await Raw.SendRequestAsync(client, "/bytes/10", close: true);
            await client.CopyToAsync(Stream.Null).InTime($"{this}: the response");
        }
        catch (Exception e) when (e is AuthenticationException or IOException)
        {
            // The log says why.
        }
    }

    [GeneratedRegex(@"\b[01]H[0-9A-Z]{9,}(:[0-9A-F]{8})?|\b\d+\.\d+ms|(?<=127\.0\.0\.1:)\d+")]
    private static partial Regex Id();
}
