using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests sends and receives that fail with an errno of a machine without memory, as rarely as it occurs. It ends in the stock stream's
/// exception, and what has arrived stays in order. The filters that make calls fail are permanent, so the cases of each mode run in a
/// separate process, which disposes no connection before all are done: a filter knows descriptors, and their numbers must not be reused.
/// </summary>
public class OddErrnoTests
{
    private const string ModeVariable = "KERNELTLS_ODD_ERRNO";
    private const int NoMemory = 12;   // ENOMEM
    private const int NoBuffers = 105; // ENOBUFS
    private const int Size = 100_000;

    private readonly List<TlsPair> _pairs = [];

    public static TheoryData<TlsMode> EachMode => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(EachMode))]
    public Task An_errno_of_a_machine_without_memory_ends_as_with_the_stock_stream(TlsMode mode) =>
        OwnProcess.RunAsync(typeof(OddErrnoTests), nameof(Fail_and_compare), (ModeVariable, $"{mode}"));

    /// <summary>Runs in the separate process.</summary>
    [Fact(Explicit = true)]
    public async Task Fail_and_compare()
    {
        TlsMode mode = Enum.Parse<TlsMode>(Environment.GetEnvironmentVariable(ModeVariable)!);
        foreach (int errno in (int[])[NoMemory, NoBuffers])
        {
            foreach (bool blocking in (bool[])[false, true])
            {
                foreach (bool client in (bool[])[false, true])
                {
                    string what = $"errno {errno}, blocking {blocking}, client {client}";
                    Assert.Equal($"{what}: {await SendAsync(TlsMode.Stock, errno, blocking, client)}", $"{what}: {await SendAsync(mode, errno, blocking, client)}");
                    Assert.Equal($"{what}: {await ReceiveAsync(TlsMode.Stock, errno, blocking, client)}", $"{what}: {await ReceiveAsync(mode, errno, blocking, client)}");
                    foreach (bool sends in (bool[])[false, true])
                    {
                        Assert.Equal(
                            $"{what}, sends {sends}: {await ShakeHandsAsync(TlsMode.Stock, errno, blocking, client, sends)}",
                            $"{what}, sends {sends}: {await ShakeHandsAsync(mode, errno, blocking, client, sends)}");
                    }
                }
            }
        }
    }

    /// <summary>A send fails, while data that has arrived is unread and more arrives. Reads go on, and miss no byte.</summary>
    private async Task<string> SendAsync(TlsMode mode, int errno, bool blocking, bool client)
    {
        (SslStream end, Socket socket, SslStream peer) = await ConnectAsync(mode, client);
        await Pattern.SendAsync(peer, Size, chunk: 5_000).InTime("the data");
        await Pattern.ReceiveAsync(end, Size / 2, buffer: 777).InTime("a part of the data");
        SeccompFilter.DenySends(Descriptor(socket), errno);

        // A blocking write meets unread data, and an asynchronous one a pending read.
        Task<int>? reading = blocking ? null : Pattern.ReceiveAsync(end, Size, position: Size / 2);
        string first = await OutcomeAsync(() => blocking ? Limits.Blocking(() => end.Write(new byte[50_000])) : end.WriteAsync(new byte[50_000]).AsTask());
        reading ??= Pattern.ReceiveAsync(end, Size, position: Size / 2);
        string second = await OutcomeAsync(() => end.WriteAsync(new byte[1]).AsTask());
        await SendFromAsync(peer, Size, Size / 2).InTime("more data");
        await reading.InTime("the rest of the data");
        Assert.Contains(nameof(IOException), second, StringComparison.Ordinal);
        return first;
    }

    /// <summary>A receive fails. Sends go on.</summary>
    private async Task<string> ReceiveAsync(TlsMode mode, int errno, bool blocking, bool client)
    {
        (SslStream end, Socket socket, SslStream peer) = await ConnectAsync(mode, client);
        SeccompFilter.DenyReceives(Descriptor(socket), errno);
        await Pattern.SendAsync(peer, 1_000);

        string outcome = await OutcomeAsync(() => blocking ? Limits.Blocking(() => end.Read(new byte[5_000])) : end.ReadAsync(new byte[5_000]).AsTask());
        await Record.ExceptionAsync(() => Pattern.SendAsync(end, Size).InTime("a send"));
        return outcome;
    }

    private async Task<string> ShakeHandsAsync(TlsMode mode, int errno, bool blocking, bool client, bool sends)
    {
        TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        _pairs.Add(pair);
        Action<int, int> deny = sends ? SeccompFilter.DenySends : SeccompFilter.DenyReceives;
        deny(Descriptor(client ? pair.ClientSocket : pair.ServerSocket), errno);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(SslProtocols.Tls13);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(SslProtocols.Tls13);
        Task[] ends =
        [
            blocking ? Limits.Blocking(() => pair.Client.ShakeClient(clientOptions)) : pair.Client.HandshakeAsClientAsync(clientOptions),
            blocking ? Limits.Blocking(() => pair.Server.ShakeServer(serverOptions)) : pair.Server.HandshakeAsServerAsync(serverOptions),
        ];
        string outcome = await OutcomeAsync(() => ends[client ? 0 : 1]);
        pair.ClientSocket.Shutdown(SocketShutdown.Both);
        await Record.ExceptionAsync(() => ends[client ? 1 : 0].InTime("the other end"));
        return outcome;
    }

    private async Task<(SslStream End, Socket Socket, SslStream Peer)> ConnectAsync(TlsMode mode, bool client)
    {
        TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        _pairs.Add(pair);
        return client ? (pair.Client, pair.ClientSocket, pair.Server) : (pair.Server, pair.ServerSocket, pair.Client);
    }

    private static async Task SendFromAsync(Stream to, int position, int count) => await to.WriteAsync(Pattern.Take(count, position));

    private static int Descriptor(Socket socket) => (int)socket.SafeHandle.DangerousGetHandle();

    /// <summary>Returns the types of the exception and of its causes, with the error of the socket.</summary>
    private static async Task<string> OutcomeAsync(Func<Task> work)
    {
        Exception? failure = await Record.ExceptionAsync(() => work().InTime("the call to fail"));
        Assert.False(failure is null or TimeoutException, $"{failure?.Message ?? "The call did not fail."}");
        return string.Join(" <- ", Causes(failure!).Select(e => e is SocketException s ? $"{nameof(SocketException)} {s.SocketErrorCode}" : e.GetType().Name));
    }

    private static IEnumerable<Exception> Causes(Exception failure)
    {
        for (Exception? e = failure; e is not null; e = e.InnerException)
        {
            yield return e;
        }
    }
}
