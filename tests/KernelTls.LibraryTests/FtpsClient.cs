using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>
/// Represents a client of FTP over TLS (RFC 4217), whose streams are woven: a control connection, and a data connection for each file.
/// </summary>
internal sealed class FtpsClient : IAsyncDisposable
{
    private readonly SslProtocols _version;
    private readonly bool _synchronously;
    private readonly NetworkStream _plain;
    private StreamReader _replies;
    private Stream _control;

    private FtpsClient(Socket socket, SslProtocols version, bool synchronously)
    {
        (_version, _synchronously) = (version, synchronously);
        _control = _plain = new NetworkStream(socket, ownsSocket: true);
        _replies = new StreamReader(_plain, Encoding.ASCII);
    }

    /// <summary>Gets or sets whether data connections may resume a session.</summary>
    public bool Resumes { get; set; } = true;

    /// <summary>Connects, and begins TLS on the connection.</summary>
    public static async Task<FtpsClient> ConnectAsync(FtpServer server, SslProtocols version, bool synchronously = false)
    {
        FtpsClient client = new(await OpenAsync(server.Port), version, synchronously);
        await client.ReplyAsync("220");
        await client.CommandAsync("AUTH TLS", "234");
        client._control = await client.SecureAsync(client._plain);
        client._replies = new StreamReader(client._control, Encoding.ASCII);
        await client.CommandAsync($"USER {server.User.Name}", "331");
        await client.CommandAsync($"PASS {server.User.Password}", "230");
        await client.CommandAsync("PBSZ 0", "200");
        await client.CommandAsync("PROT P", "200");
        await client.CommandAsync("TYPE I", "200");
        await client.CommandAsync("CWD uploads", "250");
        return client;
    }

    /// <summary>Sends a command, and returns the reply, which must have the code.</summary>
    public async Task<string> CommandAsync(string command, string code)
    {
        byte[] line = Encoding.ASCII.GetBytes($"{command}\r\n");
        await DoAsync(() => _control.Write(line), () => _control.WriteAsync(line).AsTask()).InTime(command);
        return await ReplyAsync(code);
    }

    /// <summary>Stores a file.</summary>
    /// <remarks>
    /// Waits for the server's close_notify. TLS 1.3's tickets may arrive after the upload, and on a closed socket they reset the connection: the
    /// server would lose the end of the file.
    /// </remarks>
    public async Task StoreAsync(string name, byte[] content)
    {
        await using (SslStream data = await OpenDataAsync($"STOR {name}"))
        {
            await DoAsync(() => data.Write(content), () => data.WriteAsync(content).AsTask()).InTime("the upload");
            await data.ShutdownAsync().InTime("the end of the upload");
            Assert.Equal(0, await DoAsync(() => data.Read(new byte[1]), () => data.ReadAsync(new byte[1]).AsTask()).InTime("the server's close_notify"));
        }

        await ReplyAsync("226");
    }

    public async Task<byte[]> RetrieveAsync(string name)
    {
        using MemoryStream content = new();
        await using (SslStream data = await OpenDataAsync($"RETR {name}"))
        {
            await DoAsync(() => data.CopyTo(content), () => data.CopyToAsync(content)).InTime("the download");
            await data.ShutdownAsync().InTime("the end of the download");
        }

        await ReplyAsync("226");
        return content.ToArray();
    }

    /// <summary>Sends a command that transfers a file, and returns the stream for its content.</summary>
    public async Task<SslStream> OpenDataAsync(string command)
    {
        string reply = await CommandAsync("EPSV", "229");
        NetworkStream plain = new(await OpenAsync(int.Parse(reply.Split('|')[3], CultureInfo.InvariantCulture)), ownsSocket: true);
        await CommandAsync(command, "150");
        return await SecureAsync(plain);
    }

    /// <summary>Reads a reply, of one line or several, which must have the code.</summary>
    public async Task<string> ReplyAsync(string code)
    {
        string? line;
        do
        {
            line = await (_synchronously ? Limits.Blocking(_replies.ReadLine) : _replies.ReadLineAsync()).InTime($"the reply {code}");
            Assert.NotNull(line);
        }
        while (line.Length < 4 || line[3] != ' ' || !line[..3].All(char.IsAsciiDigit));

        Assert.StartsWith(code, line, StringComparison.Ordinal);
        return line;
    }

    public ValueTask DisposeAsync()
    {
        _replies.Dispose();
        return _plain.DisposeAsync();
    }

    private static async Task<Socket> OpenAsync(int port)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, port).InTime("a connection");
        return socket;
    }

    private async Task<SslStream> SecureAsync(NetworkStream plain)
    {
        SslStream tls = new(plain);
        SslClientAuthenticationOptions options = new() { TargetHost = "localhost", EnabledSslProtocols = _version, AllowTlsResume = Resumes };
        await DoAsync(() => tls.AuthenticateAsClient(options), () => tls.AuthenticateAsClientAsync(options)).InTime("a handshake");
        return tls;
    }

    private Task DoAsync(Action action, Func<Task> start) => _synchronously ? Limits.Blocking(action) : start();

    private Task<T> DoAsync<T>(Func<T> function, Func<Task<T>> start) => _synchronously ? Limits.Blocking(function) : start();
}
