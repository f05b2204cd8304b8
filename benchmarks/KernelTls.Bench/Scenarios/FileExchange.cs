using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents an exchange whose answer is a file.</summary>
internal sealed class FileExchange : Exchange
{
    private readonly BenchFile _file;

    public FileExchange(Mode mode, int fileSize)
        : base(mode, fileSize, operationsPerRound: 4) => _file = new BenchFile(fileSize);

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        _file.Dispose();
    }

    protected override ValueTask RespondAsync(Stream server) => Mode.SendFileAsync(server, _file);
}
