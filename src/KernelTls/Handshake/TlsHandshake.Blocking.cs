using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Handshake;

// The blocking handshake.
internal sealed partial class TlsHandshake
{
    /// <summary>
    /// Performs the handshake and blocks until it completes, gives the stream its outcome, and disposes this object. The socket's timeouts
    /// limit each wait.
    /// </summary>
    public void Run()
    {
        HandshakeTelemetry telemetry = HandshakeTelemetry.Start(IsServer, TargetHost);
        try
        {
            _stream.Adopt(RunBlocking(), telemetry);
        }
        catch (Exception e)
        {
            _stream.Fail(this, e, telemetry).Throw();
        }
        finally
        {
            Dispose();
        }
    }

    private TlsSession RunBlocking()
    {
        bool isLate = IsServer && !WaitForClient();
        SocketOptions.MakeNonBlocking(_socket, TlsErrors.CannotAuthenticate);
        Begin();
        int refusals = 0;
        while (!Step(out NativeStatus wanted))
        {
            if (isLate && wanted == NativeStatus.WantRead)
            {
                throw TlsErrors.Socket(TlsErrors.CannotAuthenticate, SocketError.TimedOut);
            }

            isLate = false;
            switch (wanted)
            {
                case NativeStatus.WantWrite:
                    if (!SocketReadiness.WaitForRoom(_socket, ref refusals))
                    {
                        throw TlsErrors.Socket(TlsErrors.CannotAuthenticate, SocketError.TimedOut);
                    }

                    break;
                case NativeStatus.WantRead:
                    isLate = !_receiver.WaitReadable();
                    break;
                default:
                    // The callbacks of blocking handshakes are synchronous, so this does not wait.
                    DecideAsync(wanted, CancellationToken.None).GetAwaiter().GetResult();
                    break;
            }
        }

        return Complete();
    }

    /// <summary>
    /// Waits until the client has sent a record, blocking. Returns <see langword="false"/> when the time is over.
    /// </summary>
    private bool WaitForClient()
    {
        try
        {
            return FirstRecord.Wait(_receiver);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            throw FailedWait(e);
        }
    }
}
