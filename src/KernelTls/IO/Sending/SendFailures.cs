using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>
/// Converts the failures of sends to the exceptions that callers get. A send can fail because of a record that the kernel refuses
/// to receive.
/// </summary>
internal sealed class SendFailures(bool kernel, SendGate gate)
{
    /// <summary>Gets or sets the function that lets the receiver take a refused record: <see cref="TlsReceiver.TakeRefusedRecord"/>.</summary>
    public Action<int>? TakeRefusedRecord { get; set; }

    /// <summary>Returns the exception for the caller of a send in progress: if the stream was disposed, that of the disposal.</summary>
    public Exception Translate(Exception e) => e switch
    {
        OperationCanceledException => e,
        _ when gate.IsDisposed => TlsErrors.Disposed(TlsErrors.CannotWrite, e),
        ObjectDisposedException => e,
        _ when RecordErrnoOf(e) is not 0 and int errno && ReadRefusedRecord(errno) is { } failure => failure,
        SocketException failure => TlsErrors.Socket(TlsErrors.CannotWrite, failure.SocketErrorCode),
        _ => e,
    };

    /// <summary>Returns the errno of a send that may have failed because of a refused record, or 0.</summary>
    private int RecordErrnoOf(Exception e) =>
        kernel && (e as SocketException ?? e.InnerException as SocketException) is { } failure
            ? new SocketReceiveResult(0, failure.SocketErrorCode).RecordErrno
            : 0;

    /// <summary>Returns the failure that the refused record is to reads, or <see langword="null"/> if there is none or data precedes it.</summary>
    private Exception? ReadRefusedRecord(int errno)
    {
        if (gate.Failure is null)
        {
            TakeRefusedRecord?.Invoke(errno);
        }

        return gate.Failure;
    }
}
