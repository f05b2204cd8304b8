using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents an FTP server that requires TLS, and data connections that resume the session of their control connection.</summary>
public abstract class FtpServer(string program) : Server(program)
{
    // Neither server says when it listens. Both can serve the connection that is their standard input.
    private const string Listener = """
        use IO::Socket::INET;
        my ($port, @command) = @ARGV;
        my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 5, ReuseAddr => 1) or die "$!\n";
        $SIG{CHLD} = 'IGNORE';
        warn "listening\n";
        while (my $connection = $listener->accept) {
            if (fork == 0) {
                $SIG{CHLD} = 'DEFAULT';
                open STDIN, '<&', $connection;
                open STDOUT, '>&', $connection;
                exec @command;
            }
            close $connection;
        }
        """;

    /// <summary>Gets the name and the password of its user.</summary>
    public abstract (string Name, string Password) User { get; }

    protected override int EndSignal => SigKill;

    /// <summary>Gets the command that serves the connection that is its standard input and output.</summary>
    protected abstract string[] Command { get; }

    /// <summary>Gets the directory of the user's files.</summary>
    protected string Uploads => Path.Combine(Files, "root", "uploads");

    /// <summary>Creates the directory of the user's files, which belongs to the owner.</summary>
    private protected async Task CreateUploadsAsync(string owner)
    {
        Directory.CreateDirectory(Uploads);
        await RunAsync("chown", owner, Uploads);
        await RunAsync("chmod", "755", Files);
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start("unshare", Files, [.. WithItsProcesses, "perl", "-e", Listener, $"{Port}", .. Command]);
        await server.ErrorsContain("listening");
        return server;
    }
}
