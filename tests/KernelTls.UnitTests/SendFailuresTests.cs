using System.Net.Sockets;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

public class SendFailuresTests
{
    /// <summary>
    /// The kernel reports a refused record once. A read that is woken at the same time may have received the error, and
    /// then OpenSSL finds nothing in the socket. The send must still end the connection with the alert.
    /// </summary>
    [Theory]
    [InlineData(SocketError.MessageSize, Errno.MessageSize)]
    [InlineData(SocketError.InvalidArgument, Errno.Invalid)]
    [InlineData(SocketError.SocketError, Errno.InputOutput)]
    public async Task A_send_passes_the_error_of_a_refused_record_to_OpenSSL(SocketError error, int errno)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        using ConnectionWithoutRecord connection = new(sockets.Client.SafeHandle);
        SendGate gate = new();
        OpenSslWriter writer = new(connection, sockets.Client, gate);
        SendKeys keys = new(gate, writer, sockets.Client, default, recordLimit: 100);
        SendFailures failures = new(connection, sockets.Client, kernel: true, gate, keys);

        Exception failure = failures.Translate(new SocketException((int)error));

        Assert.Equal([errno], connection.Errors);
        Assert.NotNull(gate.Failure);
        Assert.Same(gate.Failure, failure);
    }

    /// <summary>A connection on which OpenSSL fails only after it was given the error.</summary>
    private sealed class ConnectionWithoutRecord(SafeSocketHandle socket) : TlsConnection(new SafeTlsConnectionHandle(0), socket)
    {
        public List<int> Errors { get; } = [];

        public override NativeResult Read(Span<byte> buffer) =>
            new() { Status = Errors.Count == 0 ? NativeStatus.WantRead : NativeStatus.TlsError };

        public override void ReceiveFailed(int errno) => Errors.Add(errno);
    }
}
