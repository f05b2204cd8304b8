using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests that one party at a time receives from a socket on which the kernel decrypts: a read, or OpenSSL for the sender or a disposal.
/// The socket and OpenSSL are replaced, so that the other thread acts at a chosen moment.
/// </summary>
public sealed class ReceiveTurnTests : IAsyncLifetime
{
    private SocketPair _sockets = null!;
    private ScriptedSocket _socket = null!;
    private ScriptedOpenSsl _openSsl = null!;
    private TlsSender _sender = null!;
    private TlsReceiver _receiver = null!;

    public async ValueTask InitializeAsync()
    {
        _sockets = await SocketPair.ConnectAsync();
        _socket = new ScriptedSocket(_sockets.Client);
        _openSsl = new ScriptedOpenSsl(_sockets.Client.SafeHandle);
        _sender = new TlsSender(_openSsl, _sockets.Client, kernel: true, default, recordLimit: 100);
        _receiver = new TlsReceiver(
            _openSsl, _sender, _socket, kernel: true, pending: false, canRekey: true, requiresCloseNotify: false, storeSession: null, certificateSent: () => { });
    }

    public ValueTask DisposeAsync()
    {
        _receiver.Dispose();
        _openSsl.Dispose();
        _sockets.Dispose();
        return default;
    }

    [Fact]
    public async Task A_disposal_during_a_pending_read_receives_nothing_and_the_read_returns_nothing()
    {
        SocketAsyncEventArgs? pending = null;
        _socket.OnStart = e => pending = e;
        Task<int> reading = _receiver.ReceiveAsync(new byte[4_096], default).AsTask();

        _receiver.Close();
        ScriptedSocket.Complete(pending!, 100);

        await Assert.ThrowsAsync<IOException>(() => reading.InTime());
        Assert.Equal(0, _openSsl.Reads);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(4_096)]
    public void A_disposal_during_a_receive_receives_nothing_and_the_read_returns_nothing(int size)
    {
        _socket.OnTryReceive = () =>
        {
            _receiver.Close();
            return new SocketReceiveResult(1, SocketError.Success);
        };

        Assert.Throws<IOException>(() => _receiver.Receive(new byte[size]));

        Assert.Equal(0, _openSsl.Reads);
        Assert.Throws<ObjectDisposedException>(() => _receiver.Receive(new byte[size]));
    }

    [Fact]
    public void A_disposal_between_reads_takes_control_records_and_no_read_follows()
    {
        _receiver.Close();

        Assert.Equal(1, _openSsl.Reads);
        Assert.Throws<ObjectDisposedException>(() => _receiver.Receive(new byte[10]));
        Assert.Equal(1, _openSsl.Reads);
    }

    [Fact]
    public async Task A_failed_send_during_a_pending_read_receives_nothing()
    {
        SocketAsyncEventArgs? pending = null;
        _socket.OnStart = e => pending = e;
        Task<int> reading = _receiver.ReceiveAsync(new byte[4_096], default).AsTask();

        _receiver.TakeRefusedRecord(Errno.InputOutput);
        ScriptedSocket.Complete(pending!, 100);

        Assert.Equal(100, await reading.InTime());
        Assert.Equal(0, _openSsl.Reads);
    }

    /// <summary>The read is woken too, but the stream is disposed first. The peer still gets the alert.</summary>
    [Theory]
    [InlineData(Errno.Invalid, Errno.Invalid)]
    [InlineData(Errno.InputOutput, Errno.BadMessage)]
    public void A_disposal_during_a_read_after_a_failed_send_lets_OpenSSL_fail_without_a_receive(int errno, int expected)
    {
        _socket.OnStart = _ => { };
        _ = _receiver.ReceiveAsync(new byte[4_096], default).AsTask();
        _receiver.TakeRefusedRecord(errno);

        _receiver.Close();

        Assert.Equal([expected], _openSsl.Errors);
        Assert.Equal(1, _openSsl.Reads);
    }

    /// <summary>The send has failed for another reason, such as ENOMEM. What has arrived is received in order.</summary>
    [Fact]
    public void A_failed_send_between_reads_keeps_what_has_arrived_in_order()
    {
        Queue<SocketReceiveResult?> results = new([new(500, SocketError.Success), new(300, SocketError.Success)]);
        _socket.OnTryReceive = () => results.Dequeue();

        _receiver.TakeRefusedRecord(Errno.InputOutput);

        Assert.Equal(500, _receiver.Receive(new byte[4_096]));
        Assert.Equal(300, _receiver.Receive(new byte[4_096]));
        Assert.Equal(0, _openSsl.Reads);
        Assert.Null(_sender.Gate.Failure);
    }

    [Theory]
    [InlineData(Errno.Invalid)]
    [InlineData(Errno.MessageSize)]
    public void A_refused_record_fails_a_read_after_the_data_before_it(int errno)
    {
        Queue<SocketReceiveResult?> results = new([new(500, SocketError.Success), new(300, SocketError.Success), null]);
        _socket.OnTryReceive = () => results.Dequeue();

        _receiver.TakeRefusedRecord(errno);

        Assert.Equal(1, _socket.ClearedErrors);
        Assert.Equal(500, _receiver.Receive(new byte[4_096]));
        Assert.Equal(300, _receiver.Receive(new byte[4_096]));
        Assert.Empty(_openSsl.Errors);
        Assert.Throws<IOException>(() => _receiver.Receive(new byte[4_096]));
        Assert.Equal([errno], _openSsl.Errors);
        Assert.NotNull(_sender.Gate.Failure);
    }

    [Theory]
    [InlineData(Errno.Invalid)]
    [InlineData(Errno.MessageSize)]
    public void A_refused_record_with_nothing_before_it_fails_the_connection_at_once(int errno)
    {
        _socket.OnTryReceive = () => null;

        _receiver.TakeRefusedRecord(errno);

        Assert.Equal([errno], _openSsl.Errors);
        Exception? failure = _sender.Gate.Failure;
        Assert.NotNull(failure);
        Assert.Same(failure, Assert.ThrowsAny<IOException>(() => _receiver.Receive(new byte[10])));
    }

    private sealed class ScriptedSocket(Socket socket) : SocketReceiver(socket)
    {
        public Func<SocketReceiveResult?>? OnTryReceive { get; set; }

        public Action<SocketAsyncEventArgs>? OnStart { get; set; }

        public int ClearedErrors { get; private set; }

        public override SocketReceiveResult? TryReceive(Span<byte> buffer) => OnTryReceive!();

        public override bool Start(SocketAsyncEventArgs arguments, CancellationToken cancellationToken)
        {
            OnStart!(arguments);
            return true;
        }

        public override SocketReceiveResult Complete(int bytes, SocketError error) => new(bytes, error);

        public override void ClearError() => ClearedErrors++;

        public override bool WaitReadable() => true;

        /// <summary>Completes a receive that <see cref="Start"/> has left pending.</summary>
        public static void Complete(SocketAsyncEventArgs arguments, int bytes)
        {
            BytesOf(arguments) = bytes;
            OnCompleted(arguments, arguments);
        }

        [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_bytesTransferred")]
        private static extern ref int BytesOf(SocketAsyncEventArgs arguments);

        [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "OnCompleted")]
        private static extern void OnCompleted(SocketAsyncEventArgs arguments, SocketAsyncEventArgs e);
    }

    /// <summary>An OpenSSL that finds nothing, and fails after it was given the error of a record.</summary>
    private sealed class ScriptedOpenSsl(SafeSocketHandle socket) : TlsConnection(new SafeTlsConnectionHandle(0), socket)
    {
        public List<int> Errors { get; } = [];

        public int Reads { get; private set; }

        public override NativeResult Read(Span<byte> buffer)
        {
            Reads++;
            return new NativeResult { Status = Errors.Count == 0 ? NativeStatus.WantRead : NativeStatus.TlsError };
        }

        public override void ReceiveFailed(int errno) => Errors.Add(errno);
    }
}
