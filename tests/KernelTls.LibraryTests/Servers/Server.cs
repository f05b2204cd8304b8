using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// A server of the distribution on a port of its own on 127.0.0.1, with a certificate for it: made once for the tests of a class, and
/// started when the first of them asks.
/// </summary>
public abstract class Server(string program) : IAsyncDisposable
{
    private protected const int SigInt = 2;
    private protected const int SigKill = 9;
    private protected const int SigTerm = 15;

    private readonly TemporaryDirectory _directory = new();
    private readonly ReservedPort _port = new();
    private ExternalProgram? _program;
    private bool _isPrepared;

    public int Port => _port.Number;

    /// <summary>Where its files are.</summary>
    protected string Files => _directory.FullName;

    /// <summary>The paths of its certificate and its key, and of the authority that it trusts.</summary>
    protected string Certificate => _directory["certificate.pem"];

    protected string Key => _directory["key.pem"];

    protected string Authority => _directory["authority.pem"];

    /// <summary>Its program: where there is none, its tests fail in a cell and are skipped elsewhere.</summary>
    protected string Program { get; } = program;

    /// <summary>The signal that ends it without waiting for its clients.</summary>
    protected virtual int EndSignal => SigTerm;

    /// <summary>Starts it, if it does not run.</summary>
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

    /// <summary>Ends it, with all its connections.</summary>
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

    /// <summary>Makes what it needs in its directory.</summary>
    protected virtual Task PrepareAsync() => Task.CompletedTask;

    /// <summary>Starts it, and waits until it listens.</summary>
    private protected abstract Task<ExternalProgram> LaunchAsync();

    /// <summary>
    /// The command before a program that leaves processes behind: they end with it, because it is the first of its process namespace.
    /// </summary>
    private protected static string[] WithItsProcesses => ["--pid", "--fork", "--kill-child", "--"];

    /// <summary>Runs a program of the distribution to its good end.</summary>
    private protected async Task<string> RunAsync(string program, params string[] arguments)
    {
        using ExternalProgram run = ExternalProgram.Start(program, Files, arguments);
        return await run.SucceedAsync();
    }
}
