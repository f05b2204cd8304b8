using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.FileProviders;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Kestrel for programs nobody here wrote: with static files, a directory for the programs, and what the kernel counts
/// meanwhile. In the end no connection is left in the kernel.
/// </summary>
internal sealed class InteropServer : IAsyncDisposable
{
    private readonly TlsMode _mode;
    private readonly TlsStatistics _before;
    private readonly TemporaryDirectory _files;

    private InteropServer(TlsMode mode, TlsStatistics before, TemporaryDirectory files, Server server)
    {
        _mode = mode;
        _before = before;
        _files = files;
        Server = server;
    }

    public Server Server { get; }

    /// <summary>Where the programs run. Nothing here is served.</summary>
    public TemporaryDirectory Directory { get; } = new();

    public int Port => Server.Https.Port;

    /// <param name="mode">The server's.</param>
    /// <param name="https">More settings of the endpoint.</param>
    /// <param name="kestrel">More settings of the server.</param>
    /// <param name="builder">More settings of the application.</param>
    /// <param name="application">More of the application.</param>
    public static async Task<InteropServer> StartAsync(
        TlsMode mode,
        Action<HttpsConnectionAdapterOptions>? https = null,
        Action<KestrelServerOptions>? kestrel = null,
        Action<WebApplicationBuilder>? builder = null,
        Action<WebApplication>? application = null)
    {
        TemporaryDirectory files = new();
        TlsStatistics before = Read();
        try
        {
            return new InteropServer(mode, before, files, await Server.StartAsync(
                mode, https, kestrel: kestrel, builder: builder, application: a =>
                {
                    a.UseStaticFiles(new StaticFileOptions
                    {
                        FileProvider = new PhysicalFileProvider(files.FullName),
                        ServeUnknownFileTypes = true,
                    });
                    application?.Invoke(a);
                }));
        }
        catch
        {
            files.Dispose();
            throw;
        }
    }

    /// <summary>Serves a file of so many bytes of the pattern, by this name.</summary>
    public void AddFile(string name, int size) => File.WriteAllBytes(_files[name], Pattern.Take(size));

    /// <summary>Runs curl, which has to end well; what it prints.</summary>
    public async Task<string> CurlAsync(SslProtocols version, params string[] arguments)
    {
        using ExternalProgram curl = Curl.Start(Port, Directory, version, arguments);
        return await curl.SucceedAsync();
    }

    public string Address(string path) => Curl.Address(Port, path);

    /// <summary>Asserts that a program's file holds so many bytes of the pattern, from a position on.</summary>
    public void AssertReceived(string name, int size, int position = 0)
    {
        byte[] received = File.ReadAllBytes(Directory[name]);
        Assert.Equal(size, received.Length);
        Pattern.AssertAt(position, received);
    }

    /// <summary>Asserts that the kernel took the keys of so many connections in Kernel mode, of none in the others, and lost no record.</summary>
    public void AssertConnections(int count, SslProtocols version)
    {
        TlsStatistics now = Read();
        int sending = _mode == TlsMode.Kernel ? count : 0;
        bool receives = Offloads.Expected(_mode, version).EndsWith("receive=kernel", StringComparison.Ordinal);
        Assert.Equal(sending, now.SendSoftware - _before.SendSoftware);
        Assert.Equal(receives ? count : 0, now.ReceiveSoftware - _before.ReceiveSoftware);
        Assert.Equal(0, now.DecryptError - _before.DecryptError);
    }

    /// <summary>How many connections of the server's have keys in the kernel now.</summary>
    public long CurrentConnections => Read().CurrentSendSoftware - _before.CurrentSendSoftware;

    /// <summary>Asserts that the kernel has let go of every connection.</summary>
    public async Task AssertNoneIsLeftAsync()
    {
        if (KtlsPlatform.IsSupported)
        {
            await TlsStatistics.UntilAsync(
                now => now.CurrentSendSoftware <= _before.CurrentSendSoftware && now.CurrentReceiveSoftware <= _before.CurrentReceiveSoftware,
                "the kernel to let go of the server's connections");
        }
    }

    public async ValueTask DisposeAsync()
    {
        await Server.DisposeAsync();
        _files.Dispose();
        Directory.Dispose();
        await AssertNoneIsLeftAsync();
    }

    private static TlsStatistics Read() => KtlsPlatform.IsSupported ? TlsStatistics.Read() : default;
}
