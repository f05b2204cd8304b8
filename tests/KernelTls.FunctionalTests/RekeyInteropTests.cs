using System.Globalization;
using System.Security.Authentication;
using System.Text;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests key changes of other programs and of this end while data is in transit both ways. If kernel and OpenSSL can
/// change keys, every byte arrives. Otherwise the data before the typed error is correct.
/// </summary>
public class RekeyInteropTests
{
    private const int Updates = 6;
    private const int LinesPerWrite = 200;
    private const int LinesBetweenUpdates = 1_000;

    /// <summary>The same for gnutls-cli, which writes what it receives byte by byte.</summary>
    private const int FewLinesBetweenUpdates = 200;

    /// <summary>
    /// Specifies the key change: the program changes its own; the program also requests a change of ours; this end also
    /// requests a change of the program's.
    /// </summary>
    public enum Update
    {
        Theirs,
        Both,
        Ours,
    }

    public static TheoryData<TlsMode, Update> All
    {
        get
        {
            TheoryData<TlsMode, Update> data = [];
            foreach (TlsMode mode in Modes.OnOpenSsl)
            {
                data.Add(mode, Update.Theirs);
                data.Add(mode, Update.Both);
                data.Add(mode, Update.Ours);
            }

            return data;
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task S_client_changes_keys_in_mid_transfer(TlsMode mode, Update update)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = KeyUpdateTests.StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(mode, SslProtocols.Tls13);
        await RunAsync(client, server, mode, update, (_, _) => OpenSslProgram.UpdateSendKeyAsync(client, request: update == Update.Both));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task S_server_changes_keys_in_mid_transfer(TlsMode mode, Update update)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeForCommandsAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram server = program;
        await using KtlsStream client = await ForeignPeer.ConnectAsync(port, mode, SslProtocols.Tls13);
        await RunAsync(server, client, mode, update, async (i, _) =>
        {
            await server.SayAsync(update == Update.Both ? "K" : "k");
            await LoggedAsync(directory["messages"], ">>> .*KeyUpdate", i + 1).InTime($"update {i} of s_server");
        });
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Gnutls_cli_changes_keys_in_mid_transfer(TlsMode mode, Update update)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = GnuTlsInteropTests.ConnectWithoutLog(
            listener, directory, SslProtocols.Tls13, "--inline-commands");
        await using KtlsStream server = await listener.AcceptAsync(mode, SslProtocols.Tls13);
        await RunAsync(client, server, mode, update, async (i, output) =>
        {
            await client.SayAsync(update == Update.Both ? "^rekey^" : "^rekey1^");
            await output.UntilSaidAsync("- Rekey was completed", i + 1);
        }, FewLinesBetweenUpdates);
    }

    /// <summary>
    /// Waits until the program's log contains a pattern. The program reads input at once and may then miss a command;
    /// only its log shows whether it saw it.
    /// </summary>
    private static async Task LoggedAsync(string log, string pattern, int times)
    {
        while (Regex.Count(await File.ReadAllTextAsync(log), pattern) < times)
        {
            await Task.Delay(20);
        }
    }

    /// <summary>Runs the exchange.</summary>
    /// <param name="program">The program, which sends its input and writes what it receives.</param>
    /// <param name="stream">The other end.</param>
    /// <param name="mode">The mode of the other end.</param>
    /// <param name="update">The key change.</param>
    /// <param name="updateTheirs">The function that makes the program change its keys, and waits for that.</param>
    /// <param name="linesBetweenUpdates">The number of lines that arrive between two key changes.</param>
    private static async Task RunAsync(
        ExternalProgram program, KtlsStream stream, TlsMode mode, Update update, Func<int, Lines, Task> updateTheirs, int linesBetweenUpdates = LinesBetweenUpdates)
    {
        bool theirs = update != Update.Ours;
        bool ours = update != Update.Theirs;
        bool kernelSends = stream.Offload.Send == KtlsDataPath.Kernel;
        bool kernelReceives = stream.Offload.Receive == KtlsDataPath.Kernel;
        bool goesOn = KtlsPlatform.Probe().CanRekey || !((ours && kernelSends) || kernelReceives);
        TlsStatistics before = mode == TlsMode.Kernel ? TlsStatistics.Read() : default;
        Lines arrived = new();
        using CancellationTokenSource enough = new();
        await stream.WriteAsync("BEGIN\n"u8.ToArray()).InTime("the first line");
        await program.OutputUpToAsync("BEGIN\n");
        Task<bool> checking = arrived.CheckAsync(program.Output);
        Task sending = SendLinesAsync(stream, arrived, linesBetweenUpdates, enough.Token);
        try
        {
            for (int i = 0; i < Updates; i++)
            {
                await WhileDataMoves(arrived.UpToAsync((i + 1) * linesBetweenUpdates));
                await WhileDataMoves(theirs ? updateTheirs(i, arrived) : stream.UpdateSendKeyAsync(requestPeerUpdate: true).AsTask().InTime($"update {i}"));
                await program.SayAsync($"typed {i}");
                Task<string> line = KeyUpdateTests.ReadLineAsync(stream);
                await WhileDataMoves(line.InTime($"the line behind update {i}"));
                Assert.Equal($"typed {i}\n", await line);
            }

            await WhileDataMoves(arrived.UpToAsync((Updates + 1) * linesBetweenUpdates));
            await enough.CancelAsync();
            await sending.InTime("the last write");
        }
        catch (IOException e) when (!goesOn)
        {
            // The program may have exited by now.
            Assert.IsType<KtlsRekeyException>(e as KtlsRekeyException
                ?? await Assert.ThrowsAnyAsync<IOException>(() => stream.ReadAsync(new byte[1]).InTime("the end of the connection")));
            await enough.CancelAsync();
            await stream.DisposeAsync();
            await checking.InTime("what had been sent, at the program");
            return;
        }

        Assert.True(goesOn, "a cell that cannot rekey went on");
        await stream.WriteAsync("END\n"u8.ToArray()).InTime("the last line");
        Assert.True(await checking.InTime("all lines at the program"), "the program left before the last line");
        if (mode != TlsMode.Kernel)
        {
            return;
        }

        TlsStatistics now = TlsStatistics.Read();
        Assert.Equal(0, now.DecryptError - before.DecryptError);

        // A request that arrives while the answer to the previous one still waits behind data is answered by the same
        // KeyUpdate (RFC 8446, 4.6.3).
        Assert.InRange(now.SendRekeyOk - before.SendRekeyOk, !ours ? 0 : theirs ? 1 : Updates, ours ? Updates : 0);

        // A program that reads slowly answers several of our requests at once.
        long received = now.ReceiveRekeyOk - before.ReceiveRekeyOk;
        Assert.InRange(received, !kernelReceives ? 0 : theirs ? Updates : 1, kernelReceives ? Updates : 0);

        // An incorrect line ends the checking, and with it the program's output.
        async Task WhileDataMoves(Task task) => await (await Task.WhenAny(task, sending, checking));
    }

    /// <summary>
    /// Sends numbered lines, many in a write, until canceled. From time to time all of them have arrived: gnutls-cli
    /// reads its input only when there is nothing to receive.
    /// </summary>
    private static async Task SendLinesAsync(KtlsStream stream, Lines arrived, int linesBetweenPauses, CancellationToken enough)
    {
        await Task.Yield();
        for (int line = 0; !enough.IsCancellationRequested;)
        {
            StringBuilder text = new();
            for (int i = 0; i < LinesPerWrite; i++, line++)
            {
                text.Append(Lines.Text(line)).Append('\n');
            }

            await stream.WriteAsync(Encoding.ASCII.GetBytes(text.ToString()), CancellationToken.None).InTime("room for lines");
            await (line % linesBetweenPauses == 0 ? arrived.UpToAsync(line) : Task.CompletedTask);
        }
    }

    /// <summary>Compares the lines that the program wrote. The last one may be truncated.</summary>
    private sealed class Lines
    {
        /// <summary>
        /// The messages of s_server and gnutls-cli, which may occur anywhere between the bytes received.
        /// </summary>
        private static readonly string[] s_said =
        [
            "SSL_do_handshake -> 1", "Read BLOCK", "Write BLOCK", "- Rekey was completed",
        ];

        /// <summary>The messages of programs about a connection that has ended, after the data.</summary>
        private static readonly string[] s_farewells = ["DONE", "ERROR", "---", "***", "- Peer has closed"];

        private readonly List<(Func<bool> Condition, TaskCompletionSource Seen)> _awaited = [];
        private readonly List<string> _saidSoFar = [];
        private int _count;

        public static string Text(int number) => string.Create(
            CultureInfo.InvariantCulture, $"{number:D9} {number * 7919L:D16} and so that a line has a hundred characters: {number % 97:D10} {number % 89:D10}");

        public async Task<bool> CheckAsync(Stream output)
        {
            using StreamReader reader = new(output, Encoding.ASCII, leaveOpen: true);
            await Task.Yield();
            string begun = "";
            for (string? line; (line = await reader.ReadLineAsync()) is not null;)
            {
                line = begun + line;
                string? said = s_said.FirstOrDefault(s => line.EndsWith(s, StringComparison.Ordinal));
                begun = said is null ? "" : line[..^said.Length];
                if (said is not null)
                {
                    Note(() => _saidSoFar.Add(said));
                    continue;
                }

                if (line == "END")
                {
                    return true;
                }

                string expected = Text(_count);
                if (line != expected)
                {
                    int same = expected.AsSpan().CommonPrefixLength(line);
                    Assert.True(
                        same == line.Length || s_farewells.Any(f => line.AsSpan(same).StartsWith(f)),
                        $"line {_count} arrived as '{line}'");
                    return false;
                }

                Note(() => _count++);
            }

            return false;
        }

        public Task UpToAsync(int count) => UntilAsync(() => _count >= count, $"line {count} at the program");

        public Task UntilSaidAsync(string text, int times) =>
            UntilAsync(() => _saidSoFar.Count(said => said == text) >= times, $"'{text}' from the program, {times} times");

        private void Note(Action change)
        {
            lock (_awaited)
            {
                change();
                _awaited.RemoveAll(a => a.Condition() && a.Seen.TrySetResult());
            }
        }

        private Task UntilAsync(Func<bool> condition, string what)
        {
            TaskCompletionSource seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            lock (_awaited)
            {
                if (condition())
                {
                    return Task.CompletedTask;
                }

                _awaited.Add((condition, seen));
            }

            return seen.Task.InTime(what);
        }
    }
}
