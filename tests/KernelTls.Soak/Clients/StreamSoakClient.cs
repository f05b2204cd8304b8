using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Soak;

/// <summary>
/// Uses a separate connection for some frames, with TLS 1.2 or 1.3, closed with close_notify; or one connection for the
/// whole run.
/// </summary>
/// <param name="context">The context that clients share.</param>
/// <param name="protocol">The version of a connection that lasts for the whole run, or none for others.</param>
/// <param name="seed">The seed of the client's choices.</param>
internal sealed class StreamSoakClient(SoakContext context, SslProtocols protocol, int seed) : SoakClient(context, seed)
{
    private KtlsStream? _kept;
    private bool _changesKeys = protocol == SslProtocols.Tls13;

    private bool Keeps => protocol != SslProtocols.None;

    public override int KeptConnections => Keeps ? 1 : 0;

    protected override string Kind => Keeps ? "streams-kept" : "streams";

    protected override async ValueTask CloseAsync()
    {
        if (_kept is not null)
        {
            await _kept.DisposeAsync();
        }
    }

    protected override async Task OperateAsync(CancellationToken limit)
    {
        if (Keeps)
        {
            _kept ??= await ConnectAsync(protocol, limit);
            await ChangeKeysAsync(_kept, limit);
            await ExchangeAsync(_kept, limit);
            return;
        }

        KtlsStream stream = await ConnectAsync(Random.Next(2) == 0 ? SslProtocols.Tls12 : SslProtocols.Tls13, limit);
        if (Context.Sabotage.IsDue(Fault.Socket))
        {
            Context.Sabotage.Keep(stream);
            return;
        }

        await using (stream)
        {
            for (int left = Random.Next(6); left >= 0; left--)
            {
                await ExchangeAsync(stream, limit);
            }
        }
    }

    protected override void Abandon()
    {
        _kept?.Dispose();
        _kept = null;
    }

    private async Task<KtlsStream> ConnectAsync(SslProtocols version, CancellationToken limit)
    {
        Socket socket = await SoakContext.ConnectAsync(Context.Streams, limit);
        KtlsStream stream = new(new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, Context.Options.CreateStreamOptions());
        try
        {
            await stream.AuthenticateAsClientAsync(Context.CreateClientOptions(version), limit);
        }
        catch
        {
            await stream.DisposeAsync();
            throw;
        }

        if (Context.Options.Mode == SoakMode.Kernel && stream.Offload.Send is not (KtlsDataPath.Kernel or KtlsDataPath.Hardware))
        {
            throw new InvalidOperationException($"The kernel does not encrypt: {stream.Offload}");
        }

        if (Context.Sabotage.IsDue(Fault.Connection))
        {
            // The stream is never disposed, but its socket is.
            Context.Sabotage.Keep(stream);
            socket.Dispose();
            return await ConnectAsync(version, limit);
        }

        return stream;
    }

    /// <summary>Changes keys from time to time. If the kernel or OpenSSL cannot, it never tries again.</summary>
    private async Task ChangeKeysAsync(KtlsStream stream, CancellationToken limit)
    {
        if (!_changesKeys || Random.Next(8) != 0 || Context.Options.Mode == SoakMode.Stock)
        {
            return;
        }

        try
        {
            await stream.UpdateSendKeyAsync(requestPeerUpdate: Random.Next(2) == 0, limit);
        }
        catch (KtlsRekeyException e) when (e.Failure == KtlsRekeyFailure.NotSupported)
        {
            _changesKeys = false;
        }
    }

    /// <summary>Sends a frame and reads its echo; sometimes both at once, sometimes after an empty read.</summary>
    private async Task ExchangeAsync(SslStream stream, CancellationToken limit)
    {
        ReadOnlyMemory<byte> payload = Payload.Take(Random, Payload.ChooseSize(Random));
        byte[] frame = Frame.Create(payload.Span);
        Task sending = stream.WriteAsync(frame, limit).AsTask();
        if (Random.Next(3) == 0)
        {
            await stream.ReadAsync(Memory<byte>.Empty, limit);
        }

        byte[] answer = await Frame.ReadAsync(stream, limit) ?? throw new EndOfStreamException("The stream ended before the answer.");
        Payload.Verify(answer, Payload.Hash(payload.Span), "an answer");
        await sending;
        Context.Tally.CountBytes(answer.Length);
    }
}
