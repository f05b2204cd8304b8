using System.Runtime.ExceptionServices;
using KernelTls.Diagnostics;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls;

// The outcome of a handshake on OpenSSL: the session, or a failure. Both are published to the base class.
public partial class KtlsStream
{
    /// <summary>Takes the session of a successful handshake.</summary>
    internal void Adopt(TlsSession session, in HandshakeTelemetry telemetry)
    {
        if (_options.Mode == KtlsMode.Required && GetMissingReason(session.PlannedOffload) is var missing && missing != KtlsFallbackReason.None)
        {
            session.Close(closesSocket: false);
            session.Dispose();
            throw NotAvailable(missing, Platform.DetailOf(missing));
        }

        RuntimeInternals.Publish(this, session.Protocol, session.CipherSuite, session.ApplicationProtocol, inHandshake: false);

        Bystanders.Publish(this, session.ServerCertificate);

        // The client's target host was published before the handshake.
        if (session.Settings.IsServer)
        {
            RuntimeInternals.PublishTargetHost(this, session.TargetHost);
        }

        // Interlocked: either this method sees that the stream was disposed, or the disposing thread sees the session.
        Interlocked.Exchange(ref _session, session);
        if (_disposed)
        {
            session.Dispose();
            RuntimeInternals.PublishSsl(this, null);
            throw new ObjectDisposedException(GetType().FullName);
        }

        telemetry.Completed(session);
    }

    /// <summary>Returns the reason why a requested direction is not in the kernel.</summary>
    private static KtlsFallbackReason GetMissingReason(in KtlsOffload offload) =>
        offload.SendFallbackReason is not (KtlsFallbackReason.None or KtlsFallbackReason.DirectionNotRequested)
            ? offload.SendFallbackReason
            : offload.ReceiveFallbackReason == KtlsFallbackReason.DirectionNotRequested
                ? KtlsFallbackReason.None
                : offload.ReceiveFallbackReason;

    /// <summary>Stores the failure, so that a later handshake attempt on this stream throws it again.</summary>
    internal ExceptionDispatchInfo Fail(TlsHandshake handshake, Exception failure, in HandshakeTelemetry telemetry)
    {
        _lingeringSocket = handshake.AlertedSocket;
        _peerRefused = handshake.IsPeerRefused;
        Exception outcome = _disposed && failure is ObjectDisposedException or IOException
            ? TlsErrors.Disposed(TlsErrors.CannotAuthenticate, failure)
            : failure;
        _handshakeFailure = ExceptionDispatchInfo.Capture(outcome);
        PublishFailure(_handshakeFailure);
        telemetry.Failed(outcome);
        return _handshakeFailure;
    }

    /// <summary>Makes the members of the base class behave as after a failed handshake of its own.</summary>
    private void PublishFailure(ExceptionDispatchInfo failure)
    {
        bool isRefusal = _peerRefused && !RuntimeBehavior.ForgetsRefusal;
        if (!RuntimeInternals.HasSsl(this))
        {
            Bystanders.Publish(this, null);
        }

        if (_disposed || isRefusal)
        {
            RuntimeInternals.PublishSsl(this, null);
        }

        if (!_disposed && isRefusal)
        {
            RuntimeInternals.PublishRefusal(this, failure);
        }
    }
}
