using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a fault on a stream, and how the stream reads.</summary>
/// <param name="Mode">The mode of the stream.</param>
/// <param name="Version">The TLS version.</param>
/// <param name="Fault">The fault of the peer.</param>
/// <param name="ToClient">Whether the stream is the client.</param>
/// <param name="Reader">The way to read.</param>
/// <param name="ReadsFirst">
/// Whether a read is already waiting when the fault arrives; otherwise the fault arrives together with data before it.
/// </param>
internal sealed record StreamFaultCase(
    TlsMode Mode, SslProtocols Version, RecordFault Fault, bool ToClient, FaultReader Reader, bool ReadsFirst)
{
    public override string ToString() =>
        $"to the {(ToClient ? "client" : "server")}, {Reader}, {(ReadsFirst ? "into a read that waits" : "behind data")}";

    /// <summary>Runs the case.</summary>
    /// <param name="mayWait">Whether the stock stream waits, so that this one may.</param>
    public async Task<FaultOutcome> RunAsync(bool mayWait)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        (Socket own, Socket other) = ToClient ? (sockets.Client, sockets.Server) : (sockets.Server, sockets.Client);
        await using SslStream stream = Modes.Create(Mode, new NetworkStream(own, ownsSocket: true));
        using TlsPeer peer = new(other, Version, isServer: ToClient);
        await ConnectAsync(stream, peer);
        FaultScene scene = new(peer, static (position, count) => Pattern.Take(count, position), ToClient);
        byte[] good = scene.Data();
        List<byte[]> segments = [.. Fault.Bytes(scene)];
        if (Fault.End == FaultEnd.Open)
        {
            segments.Add(scene.Data());
        }

        TaskCompletionSource first = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Task<FaultReading>? reading = null;
        if (ReadsFirst)
        {
            reading = ReadAsync(stream, scene, first.SetResult);
            await peer.SendAsync(good).InTime("the data in front of the fault");
            await first.Task.InTime($"the data in front of the fault, {this}");
        }
        else if (segments.Count > 0)
        {
            segments[0] = [.. good, .. segments[0]];
        }

        foreach (byte[] segment in segments)
        {
            await SendAsync(peer, segment);
        }

        if (Fault.End is FaultEnd.Fin or FaultEnd.Reset)
        {
            peer.End(reset: Fault.End == FaultEnd.Reset);
        }

        reading ??= ReadAsync(stream, scene, null);
        return await FinishAsync(stream, peer, reading, scene, mayWait);
    }

    private async Task<FaultOutcome> FinishAsync(SslStream stream, TlsPeer peer, Task<FaultReading> reading, FaultScene scene, bool mayWait)
    {
        await Task.WhenAny(reading, Task.Delay(mayWait ? FaultLimits.Silence : FaultLimits.Hang));
        FaultReading done = reading.IsCompleted ? await reading : new FaultReading(scene.Delivered, FaultOutcome.Waits, null);
        bool reset = Fault.End == FaultEnd.Reset;
        string write = "";
        Exception? late = null;
        if (done.Ending is FaultOutcome.All or FaultOutcome.Waits)
        {
            write = reset ? "" : await WriteAsync(stream, peer);
        }
        else if (Mode != TlsMode.Stock && done.Failure is { } failure)
        {
            Exception? again = await Record.ExceptionAsync(() => stream.ReadAsync(new byte[1]).AsTask().Within(FaultLimits.Hang, $"a read after {Fault}, {this}"));
            Assert.True(ReferenceEquals(again, failure), $"{Fault}, {this}: {failure} and then {again}");
            late = await Record.ExceptionAsync(() => stream.WriteAsync(new byte[1]).AsTask().Within(FaultLimits.Hang, $"a write after {Fault}, {this}"));
            Assert.True(late is null or IOException, $"{Fault}, {this}: a write after {failure} came to {late}");
        }

        await stream.DisposeAsync().AsTask().Within(FaultLimits.Hang, $"the disposal of a stream that met {Fault}, {this}");
        if (!reset)
        {
            await peer.Ended.Within(FaultLimits.Hang, $"the peer to see the end of a connection that met {Fault}, {this}");
        }

        await Record.ExceptionAsync(() => reading.Within(FaultLimits.Hang, $"a read to end with its stream, {Fault}, {this}"));

        // Nothing follows a fatal alert (RFC 8446, section 6.2). Data sent after a reset need not arrive.
        string alert = reset ? "" : string.Join(", ", peer.Alerts.Distinct());
        bool fatal = alert.Length > 0 && done.Failure is not null;
        Assert.True(Mode == TlsMode.Stock || !fatal || late is IOException, $"{Fault}, {this}: a write after the alert '{alert}' came to {late}");
        return new FaultOutcome(done.Received, done.Ending, alert, write);
    }

    /// <summary>Writes data that the peer can read.</summary>
    private async Task<string> WriteAsync(SslStream stream, TlsPeer peer)
    {
        const int before = 1;
        byte[] bytes = [42, 43, 44];
        Exception? failure = await Record.ExceptionAsync(() => stream.WriteAsync(bytes).AsTask().Within(FaultLimits.Hang, $"a write after {Fault}, {this}"));
        if (failure is not null)
        {
            return FaultOutcome.Name(failure);
        }

        byte[] received = await peer.UntilAsync(d => d.Length >= before + bytes.Length).Within(FaultLimits.Hang, $"the peer to receive data after {Fault}, {this}");
        return received.AsSpan(before).SequenceEqual(bytes) ? FaultOutcome.Works : $"{received.Length - before} bytes arrived";
    }

    /// <summary>Performs the handshake and exchanges a byte each way, so that no ticket is in transit.</summary>
    private async Task ConnectAsync(SslStream stream, TlsPeer peer)
    {
        Task own = ToClient ? stream.HandshakeAsClientAsync(Handshakes.ClientOptions(Version)) : stream.HandshakeAsServerAsync(Handshakes.ServerOptions(Version));
        Task<bool> other = peer.ShakeHandsAsync();
        await Task.WhenAll(own, other).InTime($"a handshake, {Mode}, {this}");
        Assert.True(await other, $"a handshake: {string.Join(", ", peer.Alerts)}");
        Modes.AssertIn(Mode, stream);
        peer.Watch();
        await stream.WriteAsync(new byte[1]).InTime("a byte");
        await peer.UntilAsync(d => d.Length == 1).InTime("a byte from the stream");
        await peer.SendAsync(peer.Seal(RecordType.ApplicationData, [7])).InTime("a byte");
        await stream.ReadExactlyAsync(new byte[1]).InTime("a byte from the peer");
    }

    /// <summary>Sends a segment. The other end may have closed already.</summary>
    private static async Task SendAsync(TlsPeer peer, byte[] segment)
    {
        try
        {
            await peer.SendAsync(segment).Within(FaultLimits.Hang, "the fault to be sent");
        }
        catch (SocketException)
        {
            // Its reset is the subject of the case.
        }
    }

    private Task<FaultReading> ReadAsync(SslStream stream, FaultScene scene, Action? first) =>
        FaultReading.RunAsync(stream, Reader, 2 * FaultLimits.Hang, Fault.End == FaultEnd.Open ? scene.Size : long.MaxValue, received =>
        {
            scene.Delivered = received;
            if (received >= FaultScene.Usual && first is { } tell)
            {
                first = null;
                tell();
            }
        });
}
