using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Diagnostics;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.IO;

/// <summary>
/// Represents an established connection: its two halves, the negotiated properties, and the data paths. Owns the SSL*.
/// </summary>
internal sealed partial class TlsSession : IDisposable
{
    // The state of this connection in the reports to the runtime's event source; 0 for nothing.
    private const int ReportedOpen = 1;
    private const int ReportedClosed = 2;

    private readonly Socket _socket;
    private readonly TlsConnection _connection;
    private readonly SocketReceiver _socketReceiver;
    private readonly SessionMetadata _metadata;
    private readonly KtlsOffload? _counted;
    private X509Certificate2? _lateCertificate;
    private KtlsOffload _offload;
    private bool _isHardwareQueried;
    private int _reported;
    private bool _isCountedClosed;

    public TlsSession(
        Socket socket,
        TlsConnection connection,
        SocketReceiver receiver,
        HandshakeSettings settings,
        X509Certificate2? shownCertificate,
        PeerVerifier peer,
        in ConnectionInfo info,
        KtlsOptions options,
        Platform platform)
    {
        _socket = socket;
        _connection = connection;
        _socketReceiver = receiver;
        Settings = settings;
        Library = options.Library;
        RemoteCertificate = peer.Certificate;
        IsResumed = info.Resumed != 0;
        Protocol = TlsConnection.ToSslProtocols(info.ProtocolVersion);
        CipherSuite = (TlsCipherSuite)info.CipherSuite;
        ApplicationProtocol = info.ApplicationProtocol;
        LocalCertificate = shownCertificate;
        _metadata = new SessionMetadata(shownCertificate is not null, peer.CachedResult);
        TargetHost = settings.IsServer
            ? ClientHelloParser.ServerNameOf(info)
            : settings.GivenHost;

        bool wantsKernel = settings.Kernel.FallbackReason == KtlsFallbackReason.None;
        bool complete = info.KtlsSend != 0 && info.KtlsReceive != 0;
        OffloadFacts facts = new(
            info.Sockmap != 0 ? KtlsFallbackReason.Sockmap : settings.Kernel.FallbackReason,
            platform.OpenSslVersion,
            platform.Kernel,
            Protocol,
            CipherSuite,
            info.KtlsSend != 0,
            info.KtlsReceive != 0,
            PeerClosed: !complete && wantsKernel && SocketEligibility.HasPeerClosed(socket),
            settings.Kernel.Directions,
            ShortRecords: info.ShortRecords != 0);
        _offload = OffloadPlan.Decide(facts);
        bool canUpdate = Protocol == SslProtocols.Tls13;
        KeyUpdates keyUpdates = new(
            Sending: canUpdate && (platform.CanRekey || !facts.SendSwitched),
            Receiving: canUpdate && (platform.CanRekey || !facts.ReceiveSwitched));
        Sender = new TlsSender(
            connection,
            socket,
            facts.SendSwitched,
            keyUpdates,
            options.RecordLimit ?? RecordBudget.DefaultLimit(Protocol, CipherSuite));
        Receiver = new TlsReceiver(
            connection,
            Sender,
            receiver,
            facts.ReceiveSwitched,
            info.Pending != 0,
            platform.CanRekey,
            options.RequireCloseNotify,
            settings.Resumes ? StoreSession : null,
            () => LocalCertificate = _lateCertificate ?? Settings.Certificate?.TargetCertificate);
        Sender.TakeRefusedRecord = Receiver.TakeRefusedRecord;

        if (settings.CertificateSelector is { } selector && info.CertificateRequested == 0)
        {
            Sender.SelectCertificate = () => SelectCertificate(selector);
        }

        // Between a certificate request and its answer OpenSSL writes nothing, and the answer must come from a read.
        bool writesMayPause = !facts.SendSwitched && settings.AnswersCertificateRequests;
        if (keyUpdates is { Sending: true, Receiving: true } && !writesMayPause)
        {
            // Otherwise a KeyUpdate ends the connection, which must not happen before the data that this end sends has
            // arrived.
            Sender.DrainControlRecords = Receiver.DrainControlRecords;
        }

        if (settings.Resumes)
        {
            StoreSession();
        }

        KtlsEventSource.Log.CountConnection(1);
        if (KtlsMeter.CountsConnections)
        {
            _counted = Offload;
            KtlsMeter.CountConnection(1, settings.IsServer, Protocol, Offload);
        }
    }

    public Socket Socket => _socket;

    public HandshakeSettings Settings { get; }

    /// <summary>Gets the assembly whose woven code created the connection, or an empty string.</summary>
    public string Library { get; }

    public TlsSender Sender { get; }

    public TlsReceiver Receiver { get; }

    /// <summary>Gets the certificate that this end sent. A client sends its certificate only on request.</summary>
    public X509Certificate2? LocalCertificate { get; private set; }

    public X509Certificate2? RemoteCertificate { get; private set; }

    /// <summary>Gets the server's certificate, at either end.</summary>
    public X509Certificate2? ServerCertificate => Settings.IsServer ? LocalCertificate : RemoteCertificate;

    /// <summary>Gets a value that indicates whether a session was resumed.</summary>
    public bool IsResumed { get; }

    public SslProtocols Protocol { get; }

    public TlsCipherSuite CipherSuite { get; }

    public byte[]? ApplicationProtocol { get; }

    public string TargetHost { get; }

    public CipherStrengths Strengths => RuntimeInternals.StrengthsOf(CipherSuite);

    /// <summary>
    /// Gets the same as <see cref="Offload"/>, without querying whether a device does the kernel's work.
    /// </summary>
    public KtlsOffload PlannedOffload => _offload;

    /// <summary>Gets the data paths. Whether a device does the kernel's work is queried once, on first use.</summary>
    public KtlsOffload Offload
    {
        get
        {
            if (!_isHardwareQueried && (_offload.Send == KtlsDataPath.Kernel || _offload.Receive == KtlsDataPath.Kernel))
            {
                _offload = QueryHardwareOffload(_offload);
                _isHardwareQueried = true;
            }

            return _offload;
        }
    }

    /// <summary>
    /// Records that the runtime's event source counts this connection as open, so that its end is reported.
    /// </summary>
    public void MarkReportedOpen()
    {
        if (Interlocked.CompareExchange(ref _reported, ReportedOpen, 0) != 0)
        {
            // Disposed in the meantime.
            RuntimeTelemetry.Closed(Protocol);
        }
    }

    /// <summary>
    /// Closes the sending half and reads pending control records, so that the socket can be closed without a reset. Waits for nothing.
    /// </summary>
    /// <param name="closesSocket">Whether the caller closes the socket next.</param>
    /// <returns>
    /// False if there was no room for close_notify. <see cref="LingerToClose"/> or <see cref="EndSending"/> may send it later.
    /// </returns>
    public bool Close(bool closesSocket)
    {
        bool isDone = Sender.Close(closesSocket || SendsInKernel);
        Receiver.Close();
        return isDone;
    }

    /// <summary>Does the same as <see cref="Close"/>, but continues the waiting operations on other threads.</summary>
    public async ValueTask<bool> CloseAsync(bool closesSocket)
    {
        bool isDone = await Sender.CloseAsync(closesSocket || SendsInKernel).ConfigureAwait(false);
        Receiver.Close();
        return isDone;
    }

    /// <summary>Gets a value that indicates whether the kernel encrypts. It continues to when the stream is disposed.</summary>
    public bool SendsInKernel => _offload.Send is KtlsDataPath.Kernel or KtlsDataPath.Hardware;

    /// <summary>Gets a value that indicates whether the kernel decrypts. It continues to when the stream is disposed.</summary>
    public bool ReceivesInKernel => _offload.Receive is KtlsDataPath.Kernel or KtlsDataPath.Hardware;

    /// <summary>Shuts down the sending half of a socket that others keep, because what they write would leave as a record.</summary>
    /// <param name="isCloseNotifyDone">The result of <see cref="Close"/>. If it is false, that happens when close_notify is sent.</param>
    public void EndSending(bool isCloseNotifyDone)
    {
        if (isCloseNotifyDone || !LingeringClose.TryBegin(_socket, _connection, mayHoldData: true, ownsSocket: false))
        {
            try
            {
                _socket.Shutdown(SocketShutdown.Send);
            }
            catch (Exception e) when (e is SocketException or ObjectDisposedException)
            {
                // The peer reset the connection, or the socket was closed.
            }
        }
    }

    /// <summary>Hands the socket, which the stream must own, and the SSL* over, so that close_notify is sent when there is room.</summary>
    public void LingerToClose() =>
        LingeringClose.TryBegin(_socket, _connection, mayHoldData: SendsInKernel, ownsSocket: true);

    /// <summary>Frees the SSL*. The stream first closes the session, then the socket.</summary>
    public void Dispose()
    {
        Receiver.Dispose();
        _connection.Dispose();
        CountClosed();
    }

    /// <summary>Counts the connection as closed, once. A finalizer may call it.</summary>
    public void CountClosed()
    {
        if (!Interlocked.Exchange(ref _isCountedClosed, true))
        {
            if (Interlocked.Exchange(ref _reported, ReportedClosed) == ReportedOpen)
            {
                RuntimeTelemetry.Closed(Protocol);
            }

            KtlsEventSource.Log.CountConnection(-1);
            if (_counted is { } offload)
            {
                KtlsMeter.CountConnection(-1, Settings.IsServer, Protocol, offload);
            }
        }
    }

    /// <summary>Returns a Finished message, for channel bindings.</summary>
    public byte[] GetFinished(bool ofPeer) => _connection.GetFinished(ofPeer);

    /// <summary>
    /// Stores a session that the server sent, so that later connections of the same kind may resume it.
    /// </summary>
    private void StoreSession()
    {
        if (_connection.TakeSession() is { } session)
        {
            ClientSessions.Shared.Add(Settings.Context, Settings.TargetHost, session, _metadata);
        }
    }

    private unsafe KtlsOffload QueryHardwareOffload(KtlsOffload offload)
    {
        SocketInfo info;
        try
        {
            if (KtlsNative.KtlsNative_GetSocketInfo(_socket.SafeHandle, &info) != 0)
            {
                return offload;
            }
        }
        catch (ObjectDisposedException)
        {
            return offload;
        }

        return new KtlsOffload(
            info.SendConfiguration == KernelConfiguration.Device ? KtlsDataPath.Hardware : offload.Send,
            offload.SendFallbackReason,
            info.ReceiveConfiguration == KernelConfiguration.Device ? KtlsDataPath.Hardware : offload.Receive,
            offload.ReceiveFallbackReason);
    }
}
