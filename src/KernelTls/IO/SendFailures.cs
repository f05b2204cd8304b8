using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Converts the failures of sends to the exceptions that callers get. A send can fail because of a record that the kernel refuses
/// to receive.
/// </summary>
internal sealed class SendFailures(TlsConnection connection, Socket socket, bool kernel, SendGate gate, SendKeys keys)
{
    /// <summary>Returns the exception for the caller: if the stream was disposed, that of the disposal instead of the socket's.</summary>
    public Exception Translate(Exception e) => e switch
    {
        OperationCanceledException or ObjectDisposedException => e,
        _ when gate.IsDisposed => new ObjectDisposedException(nameof(KtlsStream), e),
        _ when RecordErrnoOf(e) is not 0 and int errno && ReadRefusedRecord(errno) is { } failure => failure,
        SocketException failure => TlsErrors.Socket(TlsErrors.CannotWrite, failure.SocketErrorCode),
        _ => e,
    };

    /// <summary>Returns the errno of a send that may have failed because of a refused record, or 0.</summary>
    private int RecordErrnoOf(Exception e) =>
        kernel && (e as SocketException ?? e.InnerException as SocketException) is { } failure
            ? new SocketReceiveResult(0, failure.SocketErrorCode).RecordErrno
            : 0;

    /// <summary>
    /// Lets OpenSSL read the socket, send the alert and create the exception. Returns <see langword="null"/> if no record was refused.
    /// </summary>
    /// <remarks>
    /// The kernel's parser stores the error of a refused record on the socket, where the next call reports it, a receive or a send.
    /// If the send reported only a failure and the application then closed the connection, the peer would get no alert. OpenSSL
    /// is given the error, because a read that was woken at the same time may have taken it from the socket already.
    /// </remarks>
    private Exception? ReadRefusedRecord(int errno)
    {
        try
        {
            if (gate.Failure is not null)
            {
                return gate.Failure;
            }

            connection.ReceiveFailed(errno);
            if (connection.TryReadControlRecord(out NativeResult result) && result.Status == NativeStatus.TlsError)
            {
                Exception failure = TlsErrors.Read(result, keys.CanChangePeerKey);
                gate.Abandon(failure);
                KtlsEventSource.Log.ConnectionFailed(failure);
                KtlsMeter.ConnectionFailed(failure);

                // Wakes a read that waits for the socket, so that it throws the failure.
                socket.Shutdown(SocketShutdown.Receive);
            }
        }
        catch (Exception e) when (e is InvalidOperationException or SocketException or IOException)
        {
            // Another thread disposed the stream, or the peer has reset the connection.
        }

        return gate.Failure;
    }
}
