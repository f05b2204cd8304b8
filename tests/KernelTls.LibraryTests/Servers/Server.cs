using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Represents a server of the distribution, on a separate port of 127.0.0.1 and with a certificate for that address. It is created once
/// for the tests of a class, and started for the first of them.
/// </summary>
public abstract class Server(string program) : IAsyncDisposable
{
    private protected const int SigKill = 9;
    private protected const int SigTerm = 15;

    private readonly TemporaryDirectory _directory = new();
    private readonly ReservedPort _port = new();
    private ExternalProgram? _program;
    private bool _isPrepared;

    public int Port => _port.Number;

    /// <summary>Gets what its program has written to its standard error.</summary>
    public string Errors => _program?.Errors ?? "";

    /// <summary>Gets the directory of its files.</summary>
    protected string Files => _directory.FullName;

    /// <summary>Gets the paths of its certificate, its key, and the authority that it trusts.</summary>
    protected string Certificate => _directory["certificate.pem"];

    protected string Key => _directory["key.pem"];

    protected string Authority => _directory["authority.pem"];

    /// <summary>Gets the path of its program. If the program is missing, its tests fail in a cell and are skipped elsewhere.</summary>
    protected string Program { get; } = program;

    /// <summary>Gets the signal that ends it without waiting for its clients.</summary>
    protected virtual int EndSignal => SigTerm;

    /// <summary>Starts the server, unless it is running.</summary>
    public async Task StartAsync()
    {
        if (!_isPrepared)
        {
            ExternalProgram.Find(Program);
            Certificates.WritePem(Certificates.Ecdsa, Files);
            Certificates.WriteAuthority(Files);
            await PrepareAsync();
            _isPrepared = true;
        }

        _program ??= await LaunchAsync();
    }

    /// <summary>Ends the server and all its connections.</summary>
    public async Task StopAsync()
    {
        if (_program is { } program)
        {
            _program = null;
            program.Signal(EndSignal);
            await program.ExitAsync();
            program.Dispose();
        }
    }

    public async Task RestartAsync()
    {
        await StopAsync();
        await StartAsync();
    }

    public virtual async ValueTask DisposeAsync()
    {
        GC.SuppressFinalize(this);
        await StopAsync();
        _port.Dispose();
        _directory.Dispose();
    }

    /// <summary>Creates the files that it needs in its directory.</summary>
    protected virtual Task PrepareAsync() => Task.CompletedTask;

    /// <summary>Starts the program, and waits until it listens.</summary>
    private protected abstract Task<ExternalProgram> LaunchAsync();

    /// <summary>
    /// Gets the arguments for a program that would leave processes behind. The program becomes the first process of a
    /// namespace, and the others end with it.
    /// </summary>
    private protected static string[] WithItsProcesses => ["--pid", "--fork", "--kill-child", "--"];

    /// <summary>Runs a program of the distribution, which must succeed.</summary>
    private protected async Task<string> RunAsync(string program, params string[] arguments)
    {
        using ExternalProgram run = ExternalProgram.Start(program, Files, arguments);
        return await run.SucceedAsync();
    }
}
