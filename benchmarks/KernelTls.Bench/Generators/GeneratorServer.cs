using System.Globalization;
using System.Runtime;
using KernelTls.AspNetCore;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Servers;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.Bench.Generators;

/// <summary>
/// Maps what load generators request from Kestrel, and asks the server for the data path of its connections and for the methods that its
/// runtime has compiled.
/// </summary>
internal static class GeneratorServer
{
    /// <summary>The path whose responses have as many bytes as its last segment says.</summary>
    public const string BytesPath = "/bytes";

    /// <summary>The path that reads the request's body.</summary>
    public const string UploadPath = "/upload";

    private const string OffloadPath = "/offload";
    private const string CompiledPath = "/compiled";

    private static readonly byte[] s_bytes = new byte[1024 * 1024];

    public static void Map(WebApplication application)
    {
        application.MapGet($"{BytesPath}/{{size:int}}", async (HttpContext context, int size) =>
        {
            context.Response.ContentLength = size;
            await context.Response.Body.WriteAsync(s_bytes.AsMemory(0, size), context.RequestAborted);
        });
        application.MapPost(UploadPath, async context => await context.Request.Body.CopyToAsync(Stream.Null, context.RequestAborted));
        application.MapGet(CompiledPath, () => JitInfo.GetCompiledMethodCount().ToString(CultureInfo.InvariantCulture));
        application.MapGet(OffloadPath, (HttpContext context) => Describe(context.Features.Get<IKtlsFeature>()?.Offload));
    }

    /// <summary>Checks that the server's connections are in a mode.</summary>
    /// <param name="mode">The mode.</param>
    /// <param name="server">The server.</param>
    /// <param name="files">The server's files, among them its authority.</param>
    /// <exception cref="BenchFailedException">They are in another mode.</exception>
    public static async Task VerifyAsync(string mode, ServerProcess server, ServedFiles files)
    {
        string expected = mode switch
        {
            ModeTable.Direct => $"{KtlsDataPath.OpenSsl} {KtlsDataPath.OpenSsl}",
            ModeTable.Kernel => $"{KtlsDataPath.Kernel} {KtlsDataPath.Kernel}",
            _ => Describe(null),
        };
        string actual = await AskAsync(OffloadPath, server, files);
        if (actual != expected)
        {
            throw new BenchFailedException($"{mode}: a connection is '{actual}', not '{expected}'");
        }
    }

    /// <summary>Returns how many methods the server's runtime has compiled.</summary>
    public static async Task<long> CountCompiledMethodsAsync(ServerProcess server, ServedFiles files) =>
        long.Parse(await AskAsync(CompiledPath, server, files), CultureInfo.InvariantCulture);

    private static async Task<string> AskAsync(string path, ServerProcess server, ServedFiles files)
    {
        using SocketsHttpHandler handler = new();
        handler.SslOptions.CertificateChainPolicy = BenchCertificates.ReadFrom(files.FullName).CreateTrust();
        using HttpClient client = new(handler);
        return await client.GetStringAsync($"https://{BenchCertificates.Host}:{server.Port}{path}").InTime($"an answer to {path}");
    }

    private static string Describe(KtlsOffload? offload) => offload is { } paths ? $"{paths.Send} {paths.Receive}" : "stock";
}
