using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests a stream over a wrapper with a named socket: no data passes through the wrapper, unless the base class uses
/// it.
/// </summary>
public class NamedSocketTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOfKtlsStream;

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_socket_under_a_wrapper_is_used_where_it_is_named(TlsMode mode, SslProtocols version)
    {
        foreach (bool named in new[] { false, true })
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            Wrapper wrapper = new(new NetworkStream(sockets.Client, ownsSocket: true));
            KtlsOptions options = Modes.OptionsOf(mode);
            await using KtlsStream client = named ? new(wrapper, sockets.Client, false, options) : new(wrapper, false, options);
            await using KtlsStream server = new(new NetworkStream(sockets.Server, ownsSocket: true), false, Modes.OptionsOf(TlsMode.Managed));
            await Task.WhenAll(
                client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)),
                server.AuthenticateAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");

            bool direct = named && mode != TlsMode.Managed;
            Modes.AssertIn(direct ? mode : TlsMode.Managed, client);
            if (!named && mode != TlsMode.Managed)
            {
                Assert.Equal(KtlsFallbackReason.NotSocketStream, client.Offload.SendFallbackReason);
            }

            await Task.WhenAll(Pattern.SendAsync(client, 100_000), Pattern.ReceiveAsync(server, 100_000)).InTime("data");
            await Task.WhenAll(Pattern.SendAsync(server, 100_000), Pattern.ReceiveAsync(client, 100_000)).InTime("data back");
            Assert.Equal(direct, wrapper.Passed == 0);
            await client.DisposeAsync();
            Assert.True(wrapper.IsDisposed);
        }
    }

    [Fact]
    public async Task Without_a_socket_there_is_no_such_stream()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        Assert.Throws<ArgumentNullException>("socket", () => new KtlsStream(new NetworkStream(sockets.Client), socket: null!, false, null));
    }

    /// <summary>A wrapper as used by libraries that count or time.</summary>
    private sealed class Wrapper(NetworkStream inner) : Stream
    {
        public long Passed { get; private set; }

        public bool IsDisposed { get; private set; }

        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => true;

        public override long Length => throw new NotSupportedException();

        public override long Position
        {
            get => throw new NotSupportedException();
            set => throw new NotSupportedException();
        }

        public override void Flush() => inner.Flush();

        public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
        {
            int read = await inner.ReadAsync(buffer, cancellationToken);
            Passed += read;
            return read;
        }

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
        {
            Passed += buffer.Length;
            return inner.WriteAsync(buffer, cancellationToken);
        }

        protected override void Dispose(bool disposing)
        {
            IsDisposed = true;
            inner.Dispose();
            base.Dispose(disposing);
        }
    }
}
