using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Diagnostics;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.IO;

/// <summary>An established connection: its two halves, what was negotiated, and where the data goes. Owns the SSL*.</summary>
internal sealed partial class TlsSession : IDisposable
{
    // What the runtime's event source was told of this connection; 0: nothing.
    private const int ToldOpen = 1;
    private const int ToldClosed = 2;

    private readonly Socket _socket;
    private readonly TlsConnection _connection;
    private readonly SocketReceiver _socketReceiver;
    private readonly SessionOrigin _origin;
    private readonly KtlsOffload? _counted;
    private KtlsOffload _offload;
    private bool _askedKernel;
    private int _told;
    private bool _disposed;

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
        RemoteCertificate = peer.Certificate;
        IsResumed = info.Resumed != 0;
        Protocol = TlsConnection.ToSslProtocols(info.ProtocolVersion);
        CipherSuite = (TlsCipherSuite)info.CipherSuite;
        ApplicationProtocol = info.ApplicationProtocol;
        LocalCertificate = shownCertificate;
        _origin = new SessionOrigin(shownCertificate is not null, peer.Verdict);
        TargetHost = settings.IsServer
            ? HandshakeOptions.PublishedServerName(NativeText.Decode(info.ServerName))
            : settings.GivenHost;

        bool complete = info.KtlsSend != 0 && info.KtlsReceive != 0;
        OffloadFacts facts = new(
            info.Sockmap != 0 ? KtlsFallbackReason.Sockmap : settings.Kernel.WhyNot,
            platform.OpenSslVersion,
            platform.Kernel,
            Protocol,
            CipherSuite,
            info.KtlsSend != 0,
            info.KtlsReceive != 0,
            PeerClosed: !complete && SocketEligibility.HasPeerClosed(socket),
            settings.Kernel.Directions,
            ShortRecords: info.ShortRecords != 0);
        _offload = OffloadPlan.Decide(facts);
        bool canUpdate = Protocol == SslProtocols.Tls13;
        Sender = new TlsSender(
            connection,
            socket,
            facts.SendSwitched,
            new KeyUpdates(
                Sending: canUpdate && (platform.CanRekey || !facts.SendSwitched),
                Receiving: canUpdate && (platform.CanRekey || !facts.ReceiveSwitched)),
            options.RecordLimit ?? RecordBudget.DefaultLimit(Protocol, CipherSuite));
        Receiver = new TlsReceiver(
            connection,
            Sender,
            receiver,
            facts.ReceiveSwitched,
            info.Pending != 0,
            platform.CanRekey,
            settings.Resumes ? KeepSession : null,
            () => LocalCertificate = Settings.Certificate?.TargetCertificate);
        if (settings.Resumes)
        {
            KeepSession();
        }

        KtlsEventSource.Log.CountConnection(1);
        if (KtlsMeter.CountsConnections)
        {
            _counted = Offload;
            KtlsMeter.CountConnection(1, settings.IsServer, Protocol, Offload);
        }
    }

    public HandshakeSettings Settings { get; }

    public TlsSender Sender { get; }

    public TlsReceiver Receiver { get; }

    /// <summary>What this end has shown: a client shows its certificate only when it is asked for.</summary>
    public X509Certificate2? LocalCertificate { get; private set; }

    public X509Certificate2? RemoteCertificate { get; private set; }

    /// <summary>The session of an earlier connection was resumed.</summary>
    public bool IsResumed { get; }

    public SslProtocols Protocol { get; }

    public TlsCipherSuite CipherSuite { get; }

    public byte[]? ApplicationProtocol { get; }

    public string TargetHost { get; }

    public CipherStrengths Strengths => RuntimeInternals.StrengthsOf(CipherSuite);

    /// <summary>As <see cref="Offload"/>, without asking who does the kernel's work.</summary>
    public KtlsOffload Planned => _offload;

    /// <summary>What the handshake came to; whether a device does the kernel's work is asked once, when somebody looks.</summary>
    public KtlsOffload Offload
    {
        get
        {
            if (!_askedKernel && (_offload.Send == KtlsDataPath.Kernel || _offload.Receive == KtlsDataPath.Kernel))
            {
                _offload = AskKernel(_offload);
                _askedKernel = true;
            }

            return _offload;
        }
    }

    /// <summary>Notes that the runtime's event source counts this connection as open: its end will be told.</summary>
    public void NoteToldOpen()
    {
        if (Interlocked.CompareExchange(ref _told, ToldOpen, 0) != 0)
        {
            // Disposed meanwhile.
            RuntimeTelemetry.Closed(Protocol);
        }
    }

    /// <summary>Ends the sending half and leaves nothing unread that is not data: the socket can be closed.</summary>
    public void Close()
    {
        Sender.Close();
        Receiver.Close();
    }

    /// <summary>As <see cref="Close"/>, without blocking a thread.</summary>
    public async ValueTask CloseAsync()
    {
        await Sender.CloseAsync().ConfigureAwait(false);
        Receiver.Close();
    }

    /// <summary>Frees the SSL*. The stream closes the session first and the socket next.</summary>
    public void Dispose()
    {
        Receiver.Dispose();
        _connection.Dispose();
        if (!Interlocked.Exchange(ref _disposed, true))
        {
            if (Interlocked.Exchange(ref _told, ToldClosed) == ToldOpen)
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

    /// <summary>Both Finished messages, for channel bindings.</summary>
    public byte[] GetFinished(bool ofPeer) => _connection.GetFinished(ofPeer);

    /// <summary>The server gave a session: later connections of the same kind may resume it.</summary>
    private void KeepSession()
    {
        if (_connection.TakeSession() is { } session)
        {
            ClientSessions.Shared.Add(Settings.Context, Settings.TargetHost, session, _origin);
        }
    }

    private unsafe KtlsOffload AskKernel(KtlsOffload offload)
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

        return offload with
        {
            Send = info.SendConfiguration == KernelConfiguration.Device ? KtlsDataPath.Hardware : offload.Send,
            Receive = info.ReceiveConfiguration == KernelConfiguration.Device ? KtlsDataPath.Hardware : offload.Receive,
        };
    }
}
