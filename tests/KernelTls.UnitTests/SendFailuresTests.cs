using System.Net.Sockets;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.UnitTests;

public class SendFailuresTests
{
    /// <summary>The kernel reports a refused record once. A send that takes the report passes it to the receiving half.</summary>
    [Theory]
    [InlineData(SocketError.MessageSize, Errno.MessageSize)]
    [InlineData(SocketError.InvalidArgument, Errno.Invalid)]
    [InlineData(SocketError.SocketError, Errno.InputOutput)]
    public void A_send_passes_the_error_of_a_refused_record_to_the_receiver(SocketError error, int errno)
    {
        SendGate gate = new();
        IOException failure = new();
        List<int> errors = [];
        SendFailures failures = new(kernel: true, gate)
        {
            TakeRefusedRecord = e =>
            {
                errors.Add(e);
                gate.Abandon(failure);
            },
        };

        Assert.Same(failure, failures.Translate(new SocketException((int)error)));
        Assert.Same(failure, failures.Translate(new SocketException((int)error)));

        Assert.Equal([errno], errors);
    }

    [Theory]
    [InlineData(SocketError.MessageSize)]
    [InlineData(SocketError.SocketError)]
    public void A_send_that_met_no_refused_record_fails_with_its_own_error(SocketError error)
    {
        SendFailures failures = new(kernel: true, new SendGate()) { TakeRefusedRecord = _ => { } };

        IOException failure = Assert.IsType<IOException>(failures.Translate(new SocketException((int)error)));

        Assert.Equal(error, Assert.IsType<SocketException>(failure.InnerException).SocketErrorCode);
    }
}
