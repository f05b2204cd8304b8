using System.Collections.Concurrent;
using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Records that nobody has sent like that (RFC 8446, section 5; RFC 5246, section 6.2): the same fault meets SslStream, and each
/// mode. What came before it is delivered, it ends the connection at once, and the peer is told why.
/// </summary>
public partial class RecordFaultTests
{
    private const int Good = 1000;

    private static readonly ConcurrentDictionary<(TlsMode, SslProtocols, string, bool), Task<Outcome>> s_known = new();

    public static TheoryData<TlsMode, SslProtocols, string> Faults => Modes.AllWith<string>(RecordFaults.All.Keys);

    public static TheoryData<TlsMode, SslProtocols, FaultReader> Readers => Modes.AllWith(Enum.GetValues<FaultReader>());

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    /// <summary>One of each error that the kernel's parser has, and one of its decryption.</summary>
    private static string[] OneOfEach => ["major version", "length 1", "length 65535", "tag"];

    [Theory]
    [MemberData(nameof(Faults))]
    public async Task A_fault_ends_a_read_as_on_SslStream_and_the_peer_is_told(TlsMode mode, SslProtocols version, string fault)
    {
        foreach (bool toClient in new[] { true, false })
        {
            Outcome stock = await KnownAsync(TlsMode.Stock, version, fault, toClient);
            Outcome actual = await KnownAsync(mode, version, fault, toClient);
            bool byKernel = actual.Receive == KtlsDataPath.Kernel;
            string where = $"{fault}, to the {(toClient ? "client" : "server")}: SslStream {stock}, {mode} {actual}";
            TestContext.Current.TestOutputHelper?.WriteLine(where);
            if (byKernel && FaultDifferences.Find(fault, version) is { } accepted)
            {
                Assert.True(actual.Alert == accepted.Alert, $"{where}; accepted is '{accepted.Alert}'");
                Assert.True(actual.Reading.Failure is IOException == accepted.Alert.Length > 0, where);
                continue;
            }

            Assert.True(actual.Reading.Received >= stock.Reading.Received, where);
            Assert.True(actual.Reading.Failure?.GetType() == stock.Reading.Failure?.GetType(), where);
            if (mode is TlsMode.DirectOpenSsl or TlsMode.Kernel)
            {
                Outcome direct = await KnownAsync(TlsMode.DirectOpenSsl, version, fault, toClient);
                Assert.True(actual.Alert == direct.Alert, $"{where}; OpenSSL {direct}");
                Assert.True(actual.Alert.Length > 0 == actual.Reading.Failure is IOException, where);
            }
        }
    }

    [Theory]
    [MemberData(nameof(Readers))]
    public async Task Every_reader_meets_the_fault_at_once_and_again(TlsMode mode, SslProtocols version, FaultReader reader)
    {
        foreach (string fault in OneOfEach)
        {
            foreach (bool waits in new[] { true, false })
            {
                Outcome outcome = await RunAsync(mode, version, fault, toClient: true, reader, waits);
                string where = $"{fault}, {(waits ? "into a read that waits" : "behind data")}: {outcome}";
                AssertReceived(mode, outcome.Reading, where);
                Assert.True(outcome.Reading.Failure is IOException { InnerException: not SocketException }, where);
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_fault_with_a_reset_behind_it_ends_a_read(TlsMode mode, SslProtocols version)
    {
        foreach (string fault in OneOfEach)
        {
            foreach (FaultReader reader in Enum.GetValues<FaultReader>())
            {
                using FaultRelay relay = await FaultRelay.ConnectAsync(toClient: true);
                await using TlsPair pair = await ConnectAsync(relay, mode, version, toClient: true);
                relay.Arm(RecordFaults.All[fault], before: 1, together: true);
                await WriteAsync(pair.Server, Good, Good);
                await relay.Sent.InTime("the fault");
                relay.Reset();

                // TCP gives what arrived before a reset.
                FaultReading reading = await ReadAsync(pair.Client, reader, fault);
                AssertReceived(mode, reading, fault);
                Assert.IsType<IOException>(reading.Failure, exactMatch: false);
            }
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_fault_behind_a_KeyUpdate_ends_a_read(TlsMode mode)
    {
        foreach (string fault in OneOfEach)
        {
            using FaultRelay relay = await FaultRelay.ConnectAsync(toClient: true);
            await using TlsPair pair = await ConnectAsync(relay, mode, SslProtocols.Tls13, toClient: true, TlsMode.DirectOpenSsl);

            // The KeyUpdate looks like data from outside.
            relay.Arm(RecordFaults.All[fault], before: 2, together: true);
            await ((KtlsStream)pair.Server).UpdateKeysAsync(requestPeerUpdate: false).InTime("a KeyUpdate");
            await WriteAsync(pair.Server, Good, Good);
            await relay.Sent.InTime("the fault");

            FaultReading reading = await ReadAsync(pair.Client, FaultReader.Async, fault);
            bool rekeys = pair.Client is not KtlsStream { Offload.Receive: KtlsDataPath.Kernel } || KtlsPlatform.CanRekey;
            if (rekeys)
            {
                AssertReceived(mode, reading, fault);
            }

            Assert.IsType<IOException>(reading.Failure, exactMatch: false);
        }
    }

    /// <summary>TLS 1.2 changes keys in front of Finished: the kernel may have them before the handshake ends.</summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_fault_in_place_of_the_clients_Finished_ends_the_handshake(TlsMode mode)
    {
        foreach (string fault in OneOfEach)
        {
            foreach (bool blocking in new[] { false, true })
            {
                const int ChangeCipherSpec = 6;
                using HoldingRelay relay = await HoldingRelay.ConnectAsync(holdsClient: true);
                await using TlsPair pair = TlsPair.Create(relay.Ends, TlsMode.Stock, mode);
                Task client = pair.Client.ShakeClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12));
                SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.Tls12);
                Task server = blocking ? Limits.Blocking(() => pair.Server.ShakeServer(options)) : pair.Server.ShakeServerAsync(options);
                await server.StaysPending("a server without the client's ChangeCipherSpec");
                Assert.True(relay.Held > ChangeCipherSpec);
                await relay.SendAsync(ChangeCipherSpec);
                await server.StaysPending("a server without the client's Finished");

                byte[] finished = [22, 3, 3, 0, 40, .. new byte[40]];
                await relay.InjectAsync(RecordFaults.All[fault](finished));
                Exception? failure = await Record.ExceptionAsync(
                    () => server.Within(FaultReading.Limit, $"a handshake to meet: {fault}"));
                Assert.True(failure is IOException or AuthenticationException, $"{fault}: {failure}");
                Assert.DoesNotContain("timed out", $"{failure}", StringComparison.OrdinalIgnoreCase);
                pair.ServerSocket.Close();
                pair.ClientSocket.Close();
                await Record.ExceptionAsync(() => client.InTime("the client's end"));
            }
        }
    }

    private static Task<Outcome> KnownAsync(TlsMode mode, SslProtocols version, string fault, bool toClient) =>
        s_known.GetOrAdd(
            (mode, version, fault, toClient),
            static key => RunAsync(key.Item1, key.Item2, key.Item3, key.Item4, FaultReader.Async, waits: true));

    private static async Task<Outcome> RunAsync(
        TlsMode mode, SslProtocols version, string fault, bool toClient, FaultReader reader, bool waits)
    {
        using FaultRelay relay = await FaultRelay.ConnectAsync(toClient);
        await using TlsPair pair = await ConnectAsync(relay, mode, version, toClient);
        (SslStream receiver, SslStream sender) = toClient ? (pair.Client, pair.Server) : (pair.Server, pair.Client);
        relay.Arm(RecordFaults.All[fault], before: 1, together: !waits);
        Task<FaultReading> reading;
        if (waits)
        {
            TaskCompletionSource good = new(TaskCreationOptions.RunContinuationsAsynchronously);
            reading = ReadAsync(receiver, reader, fault, Good * 2, received => (received == Good ? good : null)?.SetResult());
            await WriteAsync(sender, Good);
            await good.Task.InTime("the data in front of the fault");
            await sender.WriteAsync(Pattern.At(Good, Good)).InTime("the record that is changed");
            await relay.Sent.InTime("the fault");
        }
        else
        {
            await WriteAsync(sender, Good, Good);
            await relay.Sent.InTime("the fault");
            reading = ReadAsync(receiver, reader, fault);
        }

        FaultReading done = await reading;
        KtlsDataPath receive = receiver is KtlsStream own ? own.Offload.Receive : KtlsDataPath.Managed;
        if (receive == KtlsDataPath.Managed || done.Failure is null)
        {
            return new Outcome(done, receive, "");
        }

        // The failure stays what it was, at once; and nothing follows a fatal alert (RFC 8446, section 6.2).
        FaultReading again = await ReadAsync(receiver, reader, $"a read after the failure by {fault}");
        Assert.True(again.Received == 0 && ReferenceEquals(again.Failure, done.Failure), $"{fault}: {done} and then {again}");
        Exception? write = await Record.ExceptionAsync(() => receiver.WriteAsync(new byte[1]).InTime("a write after the failure"));
        Assert.True(write is IOException, $"{fault}: a write after the failure came to {write}");
        Exception? told = await Record.ExceptionAsync(async () => await sender.ReadExactlyAsync(new byte[1]).InTime($"the alert about {fault}"));
        return new Outcome(done, receive, AlertText().Match($"{told}").Value);
    }

    /// <summary>After an exchange that leaves no ticket on its way.</summary>
    private static async Task<TlsPair> ConnectAsync(
        FaultRelay relay, TlsMode mode, SslProtocols version, bool toClient, TlsMode sender = TlsMode.Stock)
    {
        TlsPair pair = await TlsPair.ConnectAsync(toClient ? mode : sender, toClient ? sender : mode, version, sockets: relay.Ends);
        foreach ((SslStream from, SslStream to) in new[] { (pair.Client, pair.Server), (pair.Server, pair.Client) })
        {
            await from.WriteAsync(new byte[1]).InTime("a byte");
            await to.ReadExactlyAsync(new byte[1]).InTime("a byte");
        }

        return pair;
    }

    /// <summary>Writes the pattern, in records of these lengths.</summary>
    private static async Task WriteAsync(SslStream to, params int[] lengths)
    {
        int position = 0;
        foreach (int length in lengths)
        {
            await to.WriteAsync(Pattern.At(position, length)).InTime("a record");
            position += length;
        }
    }

    private static Task<FaultReading> ReadAsync(SslStream from, FaultReader how, string what, long enough = long.MaxValue, Action<long>? progress = null) =>
        FaultReading.ToTheEndAsync(from, how, enough, progress).Within(FaultReading.Limit, $"a read to meet: {what}");

    /// <summary>SslStream looks at the headers of all that it has received first, and gives up what came before a bad one.</summary>
    private static void AssertReceived(TlsMode mode, FaultReading reading, string what) =>
        Assert.True(reading.Received == Good || (mode is TlsMode.Stock or TlsMode.Managed && reading.Received == 0), $"{what}: {reading}");

    [GeneratedRegex("(?<=alert )[a-z ]+")]
    private static partial Regex AlertText();

    private sealed record Outcome(FaultReading Reading, KtlsDataPath Receive, string Alert)
    {
        public override string ToString() =>
            $"received {Reading.Received}, {Reading.Failure?.GetType().Name} ({Reading.Failure?.InnerException?.Message ?? Reading.Failure?.Message}), alert '{Alert}', {Reading.Time.TotalMilliseconds:0} ms";
    }
}
