namespace KernelTls.Tests;

/// <summary>
/// Runs haproxy in front of a plain http server: a worker and its master, with its own files and its own port on
/// 127.0.0.1.
/// </summary>
internal sealed class Haproxy : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly ReservedPort _port = new();
    private readonly ExternalProgram _program;

    /// <summary>Starts haproxy.</summary>
    /// <param name="prepare">The action that writes haproxy's files into the working directory.</param>
    /// <param name="frontend">The function that returns the frontend's content for a port.</param>
    /// <param name="backend">The server's port.</param>
    public Haproxy(Action<string> prepare, Func<int, string> frontend, int backend)
    {
        // Without maxconn, haproxy allocates space for as many connections as it may open files, which takes minutes in
        // the lab.
        prepare(_directory.FullName);
        File.WriteAllText(_directory["haproxy.cfg"], $"""
            global
                maxconn 1000
            defaults
                mode http
                timeout connect {Limits.Wait.TotalSeconds}s
                timeout client {Limits.Wait.TotalSeconds}s
                timeout server {Limits.Wait.TotalSeconds}s
            frontend front
                {frontend(_port.Number)}
                default_backend application
            backend application
                server application 127.0.0.1:{backend}

            """);
        _program = ExternalProgram.Start("haproxy", _directory.FullName, "-W", "-db", "-f", "haproxy.cfg");
    }

    public int Port => _port.Number;

    /// <summary>Waits until the master reports that the worker's sockets listen.</summary>
    public Task StartedAsync() => _program.ErrorsContain("Loading success.");

    /// <summary>Ends the master, and with it the worker.</summary>
    public void Dispose()
    {
        _program.Dispose();
        _port.Dispose();
        _directory.Dispose();
    }
}
