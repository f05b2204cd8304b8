using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.FileProviders;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Runs Kestrel for third-party programs, with static files, a directory for the programs, and the changes of the
/// kernel's counters. At the end no connection may be left in the kernel.
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

    /// <summary>Gets the directory in which the programs run. It is not served.</summary>
    public TemporaryDirectory Directory { get; } = new();

    public int Port => Server.Https.Port;

    /// <summary>Starts the server.</summary>
    /// <param name="mode">The mode of the server.</param>
    /// <param name="https">More settings of the endpoint.</param>
    /// <param name="kestrel">More settings of the server.</param>
    /// <param name="builder">More settings of the builder.</param>
    /// <param name="application">More settings of the application.</param>
    public static async Task<InteropServer> StartAsync(
        TlsMode mode,
        Action<HttpsConnectionAdapterOptions>? https = null,
        Action<KestrelServerOptions>? kestrel = null,
        Action<WebApplicationBuilder>? builder = null,
        Action<WebApplication>? application = null)
    {
        if (Cell.IsLab && KtlsPlatform.Probe().IsSupported)
        {
            // A connection of an earlier test that closes only now would be missing from the count.
            await TlsStatistics.UntilAsync(
                now => now is { CurrentSendSoftware: 0, CurrentReceiveSoftware: 0 }, "the kernel to let go of earlier connections");
        }

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

    /// <summary>Serves a file with this many bytes of the pattern under this name.</summary>
    public void AddFile(string name, int size) => File.WriteAllBytes(_files[name], Pattern.Take(size));

    /// <summary>Runs curl, which must succeed, and returns its output.</summary>
    public async Task<string> CurlAsync(SslProtocols version, params string[] arguments)
    {
        using ExternalProgram curl = Curl.Start(Port, Directory, version, arguments);
        return await curl.SucceedAsync();
    }

    public string Address(string path) => Curl.Address(Port, path);

    /// <summary>Asserts that a program's file contains this many bytes of the pattern from a position.</summary>
    public void AssertReceived(string name, int size, int position = 0)
    {
        byte[] received = File.ReadAllBytes(Directory[name]);
        Assert.Equal(size, received.Length);
        Pattern.AssertAt(position, received);
    }

    /// <summary>
    /// Asserts that the kernel took the keys of this many connections in Kernel mode and of none in the others, and
    /// decrypted every record.
    /// </summary>
    public void AssertConnections(int count, SslProtocols version)
    {
        TlsStatistics now = Read();
        int sending = _mode == TlsMode.Kernel ? count : 0;
        bool receives = Offloads.Expected(_mode, version).EndsWith("receive=kernel", StringComparison.Ordinal);
        Assert.Equal(sending, now.SendSoftware - _before.SendSoftware);
        Assert.Equal(receives ? count : 0, now.ReceiveSoftware - _before.ReceiveSoftware);
        Assert.Equal(0, now.DecryptError - _before.DecryptError);
    }

    /// <summary>Gets the number of the server's connections that have keys in the kernel now.</summary>
    public long CurrentConnections => Read().CurrentSendSoftware - _before.CurrentSendSoftware;

    /// <summary>Asserts that no connection is left in the kernel.</summary>
    public async Task AssertNoneIsLeftAsync()
    {
        if (KtlsPlatform.Probe().IsSupported)
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

    private static TlsStatistics Read() => KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;
}
