using System.Reflection;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Represents an operation of a library's client with a server of the distribution in a separate process. This process,
/// the client's, is measured.
/// </summary>
internal abstract class LibraryScenario : Scenario
{
    private readonly string _mode;
    private ServerProcess? _server;

    /// <param name="mode">A mode of <see cref="ModeTable.Libraries"/>.</param>
    /// <param name="library">The library that creates the connections.</param>
    protected LibraryScenario(string mode, Assembly library)
    {
        LibraryProcess.Verify(mode, library);
        _mode = mode;

        // KernelTls probes the kernel here, with sockets that the kernel counts.
        _ = LibraryProcess.IsKernel(mode) && KtlsPlatform.Probe().IsSupported;
    }

    /// <summary>Gets the directory with the server's files and certificate.</summary>
    protected ServedFiles Files { get; } = new();

    /// <summary>Gets the number of connections that the client opens.</summary>
    protected abstract int Connections { get; }

    public override async Task PrepareAsync()
    {
        _server = await StartServerAsync();
        KernelSockets before = KernelSockets.Read();
        await ConnectAsync(_server.Port);
        await RunAsync(1);
        KernelSockets.Read().Since(before).Expect(_mode, LibraryProcess.IsKernel(_mode) ? Connections : 0);
    }

    public override ValueTask DisposeAsync()
    {
        _server?.Dispose();
        Files.Dispose();
        return ValueTask.CompletedTask;
    }

    protected abstract Task<ServerProcess> StartServerAsync();

    /// <summary>Opens all connections and creates the data.</summary>
    protected abstract Task ConnectAsync(int port);
}
