using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a fault during the handshake of a stream.</summary>
/// <param name="Mode">The mode of the stream.</param>
/// <param name="Version">The TLS version.</param>
/// <param name="Fault">The fault of the peer.</param>
/// <param name="ToClient">Whether the stream is the client.</param>
/// <param name="Step">The record to which the fault applies.</param>
/// <param name="IsBlocking">Whether the stream uses the blocking handshake.</param>
internal sealed record HandshakeFaultCase(
    TlsMode Mode, SslProtocols Version, HandshakeFault Fault, bool ToClient, string Step, bool IsBlocking)
{
    public override string ToString() => $"at the {(ToClient ? "client" : "server")}, {Step}{(IsBlocking ? ", blocking" : "")}";

    /// <summary>Runs the case.</summary>
    /// <param name="mayWait">Whether the stock stream waits, so that this one may.</param>
    /// <returns>The result, or <see langword="null"/> if the handshake has no such record.</returns>
    public async Task<FaultOutcome?> RunAsync(bool mayWait)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        (Socket own, Socket other) = ToClient ? (sockets.Client, sockets.Server) : (sockets.Server, sockets.Client);
        await using SslStream stream = Modes.Create(Mode, new NetworkStream(own, ownsSocket: true));
        TaskCompletionSource met = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using TlsPeer peer = new(other, Version, isServer: ToClient)
        {
            Meddle = MeddleAsync,
        };
        Task<bool> peers = ShakeAsync(peer);
        Task<FaultReading> shaking = ShakeAsync(stream, peer, peers);
        await Task.WhenAny(shaking, peers, met.Task).Within(FaultLimits.Hang, $"the fault, {Fault}, {this}");
        await Task.WhenAny(shaking, Task.Delay(mayWait ? FaultLimits.Silence : FaultLimits.Hang));
        FaultReading done = shaking.IsCompleted ? await shaking : new FaultReading(0, FaultOutcome.Waits, null);
        await stream.DisposeAsync().AsTask().Within(FaultLimits.Hang, $"the disposal of a stream, {Fault}, {this}");
        await peers.Within(FaultLimits.Hang, $"the peer in a handshake, {Fault}, {this}");
        bool reset = Fault.End == FaultEnd.Reset;
        if (!reset)
        {
            await peer.Ended.Within(FaultLimits.Hang, $"the peer to see the end of a handshake, {Fault}, {this}");
        }

        await shaking.Within(FaultLimits.Hang, $"a handshake to end with its stream, {Fault}, {this}");
        return !met.Task.IsCompleted ? null : new FaultOutcome(done.Received, done.Ending, reset ? "" : string.Join(", ", peer.Alerts.Distinct()), "");

        async Task<PeerChoice> MeddleAsync(TlsPeer meddling, PeerStep step)
        {
            if (step.Name != Step)
            {
                return PeerChoice.Send;
            }

            try
            {
                foreach (byte[] segment in Fault.Bytes(meddling, step).ToArray())
                {
                    await meddling.SendAsync(segment);
                }

                if (Fault.End is FaultEnd.Fin or FaultEnd.Reset)
                {
                    meddling.End(reset: Fault.End == FaultEnd.Reset);
                }
            }
            finally
            {
                met.TrySetResult();
            }

            return Fault.Then;
        }
    }

    /// <summary>Performs the peer's handshake, and then receives.</summary>
    private static async Task<bool> ShakeAsync(TlsPeer peer)
    {
        bool good = false;
        try
        {
            good = await peer.ShakeHandsAsync();
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The stream has closed the connection.
        }

        peer.Watch();
        return good;
    }

    /// <summary>Performs the stream's handshake, and exchanges a byte each way.</summary>
    private async Task<FaultReading> ShakeAsync(SslStream stream, TlsPeer peer, Task<bool> peers)
    {
        try
        {
            await (IsBlocking ? Limits.Blocking(() => Shake(stream)) : ShakeHandsAsync(stream));
            if (!await peers)
            {
                return new FaultReading(0, "a handshake with half a peer", null);
            }

            await stream.WriteAsync(new byte[1]);
            await peer.UntilAsync(d => d.Length == 1);
            await peer.SendAsync(peer.Seal(RecordType.ApplicationData, [7]));
            return await stream.ReadAsync(new byte[1]) == 1
                ? new FaultReading(1, FaultOutcome.All, null)
                : new FaultReading(0, FaultOutcome.End, null);
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return new FaultReading(0, FaultOutcome.Name(e), e);
        }
    }

    private Task ShakeHandsAsync(SslStream stream) =>
        ToClient ? stream.HandshakeAsClientAsync(Handshakes.ClientOptions(Version)) : stream.HandshakeAsServerAsync(Handshakes.ServerOptions(Version));

    private void Shake(SslStream stream)
    {
        if (ToClient)
        {
            stream.ShakeClient(Handshakes.ClientOptions(Version));
        }
        else
        {
            stream.ShakeServer(Handshakes.ServerOptions(Version));
        }
    }
}
