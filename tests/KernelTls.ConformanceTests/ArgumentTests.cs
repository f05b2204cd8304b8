using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class ArgumentTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Bad_arguments_are_refused(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        SslStream stream = pair.Client;
        byte[] buffer = new byte[10];

        Assert.Throws<ArgumentNullException>("buffer", () => stream.Read(null!, 0, 0));
        Assert.Throws<ArgumentNullException>("buffer", () => stream.Write(null!, 0, 0));
        await Assert.ThrowsAsync<ArgumentNullException>("buffer", async () => await stream.ReadAsync(null!, 0, 0, default));
        await Assert.ThrowsAsync<ArgumentNullException>("buffer", async () => await stream.WriteAsync(null!, 0, 0, default));
        Assert.Throws<ArgumentNullException>("buffer", () => { _ = stream.BeginRead(null!, 0, 0, null, null); });
        Assert.Throws<ArgumentNullException>("buffer", () => { _ = stream.BeginWrite(null!, 0, 0, null, null); });
        foreach ((int offset, int count) in new[] { (-1, 1), (0, -1), (11, 0), (5, 6), (0, 11), (int.MaxValue, 1), (1, int.MaxValue) })
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => stream.Read(buffer, offset, count));
            Assert.Throws<ArgumentOutOfRangeException>(() => stream.Write(buffer, offset, count));
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await stream.ReadAsync(buffer, offset, count, default));
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await stream.WriteAsync(buffer, offset, count, default));
            Assert.Throws<ArgumentOutOfRangeException>(() => { _ = stream.BeginRead(buffer, offset, count, null, null); });
            Assert.Throws<ArgumentOutOfRangeException>(() => { _ = stream.BeginWrite(buffer, offset, count, null, null); });
        }

        Assert.Throws<ArgumentNullException>(() => stream.EndRead(null!));
        Assert.Throws<ArgumentNullException>(() => stream.EndWrite(null!));
        Assert.Throws<ArgumentException>(() => stream.EndRead(Task.CompletedTask));
        Assert.Throws<ArgumentException>(() => stream.EndWrite(Task.FromResult(1).ContinueWith(_ => { }, TaskScheduler.Default)));
        await Assert.ThrowsAsync<ArgumentNullException>(() => stream.CopyToAsync(null!));
        Assert.Throws<NotSupportedException>(() => stream.Seek(0, SeekOrigin.Begin));
        Assert.Throws<NotSupportedException>(() => stream.SetLength(0));
        Assert.Throws<NotSupportedException>(() => stream.Position = 0);

        // The connection is not affected.
        await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await pair.Server.ReadAsync(buffer).InTime());
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Null_options_are_refused(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);

        Assert.Throws<ArgumentNullException>(() => pair.Client.ShakeClient(null!));
        Assert.Throws<ArgumentNullException>(() => pair.Server.ShakeServer(null!));
        await Assert.ThrowsAsync<ArgumentNullException>(() => pair.Client.HandshakeAsClientAsync(null!));
        await Assert.ThrowsAsync<ArgumentNullException>(() => pair.Server.HandshakeAsServerAsync(null!));
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public void The_inner_stream_must_be_one_that_reads_and_writes(TlsMode mode)
    {
        Assert.Throws<ArgumentNullException>(() => Modes.Create(mode, null!));
        Assert.Throws<ArgumentNullException>(() => Modes.Create(mode, Stream.Null));
        Assert.Throws<ArgumentException>(() => Modes.Create(mode, new MemoryStream([1], writable: false)));
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Nothing_can_be_read_or_written_before_the_handshake(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        SslStream stream = pair.Client;
        byte[] buffer = new byte[1];

        Assert.Throws<InvalidOperationException>(() => stream.Read(buffer, 0, 1));
        Assert.Throws<InvalidOperationException>(() => stream.Read(buffer.AsSpan()));
        Assert.Throws<InvalidOperationException>(() => stream.ReadByte());
        Assert.Throws<InvalidOperationException>(() => stream.Write(buffer));
        Assert.Throws<InvalidOperationException>(() => stream.WriteByte(1));
        await Assert.ThrowsAsync<InvalidOperationException>(() => stream.ReadAsync(buffer).AsTask());
        await Assert.ThrowsAsync<InvalidOperationException>(() => stream.WriteAsync(buffer).AsTask());
        await Assert.ThrowsAsync<InvalidOperationException>(() => stream.ShutdownAsync());
        Assert.Throws<InvalidOperationException>(() => stream.SslProtocol);
        Assert.Throws<InvalidOperationException>(() => stream.NegotiatedCipherSuite);
        Assert.Throws<InvalidOperationException>(() => stream.RemoteCertificate);
        Assert.Throws<InvalidOperationException>(() => stream.LocalCertificate);
        Assert.Throws<InvalidOperationException>(() => stream.NegotiatedApplicationProtocol);
        Assert.False(stream.IsAuthenticated);
        Assert.False(stream.IsEncrypted);
        Assert.False(stream.IsSigned);
        Assert.False(stream.IsMutuallyAuthenticated);
        Assert.False(stream.CanRead);
        Assert.False(stream.CanWrite);
        Assert.False(stream.CanSeek);
        if (stream is KtlsStream own)
        {
            Assert.Throws<InvalidOperationException>(() => own.Offload);
        }
    }

    /// <summary>SslStream itself ignores a second handshake.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_stream_shakes_hands_once(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        await Assert.ThrowsAsync<InvalidOperationException>(() => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)));
        await Assert.ThrowsAsync<InvalidOperationException>(() => pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version)));
        Assert.Throws<InvalidOperationException>(() => pair.Client.ShakeClient(Handshakes.ClientOptions(version)));
        await Assert.ThrowsAsync<InvalidOperationException>(() => pair.Client.AuthenticateAsClientAsync("localhost"));

        await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await pair.Server.ReadAsync(new byte[2]).InTime());
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_stream_does_not_shake_hands_twice_at_once(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, TlsMode.Stock);
        Task first = pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13));

        await Assert.ThrowsAsync<InvalidOperationException>(
            () => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime());

        await pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13)).InTime();
        await first.InTime();
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Two_validation_callbacks_are_one_too_many(TlsMode mode)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream stream = Modes.Create(
            mode, new NetworkStream(sockets.Client), validation: (_, _, _, _) => true);
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.RemoteCertificateValidationCallback = (_, _, _, _) => false;

        await Assert.ThrowsAsync<InvalidOperationException>(() => stream.HandshakeAsClientAsync(options).InTime());
    }
}
