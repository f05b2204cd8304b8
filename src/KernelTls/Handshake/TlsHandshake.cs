using System.Net.Sockets;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// One handshake on a socket: OpenSSL reads and writes the socket itself, this class waits where it would block. On failure
/// everything it made is freed; on success it belongs to the <see cref="TlsSession"/>.
/// </summary>
internal sealed class TlsHandshake : IDisposable
{
    private readonly Socket _socket;
    private readonly HandshakeSettings _settings;
    private readonly PeerVerifier _verifier;
    private readonly SocketReceiver _receiver;
    private readonly TlsConnection _connection;
    private bool _handedOver;

    /// <param name="socket">A connected TCP socket.</param>
    /// <param name="context">The SSL_CTX made from the settings.</param>
    /// <param name="settings">What to negotiate.</param>
    /// <param name="sender">The stream, as the validation callback sees it.</param>
    public TlsHandshake(Socket socket, SafeTlsContextHandle context, HandshakeSettings settings, object sender)
    {
        _socket = socket;
        _settings = settings;
        _verifier = new PeerVerifier(sender, settings);

        // An asynchronous operation makes .NET put the descriptor into non-blocking mode, for good, and emulate blocking in
        // synchronous ones. OpenSSL must never block inside a record. Sending nothing is the cheapest such operation.
        ValueTask<int> nothing = socket.SendAsync(ReadOnlyMemory<byte>.Empty, SocketFlags.None);
        if (!nothing.IsCompletedSuccessfully)
        {
            nothing.AsTask().GetAwaiter().GetResult();
        }

        _connection = TlsConnection.Create(context, socket.SafeHandle, settings.ServerName);
        _receiver = new SocketReceiver(socket);
    }

    /// <summary>Shakes hands without blocking a thread.</summary>
    public async Task<TlsSession> RunAsync(bool kernelWanted, CancellationToken cancellationToken)
    {
        while (!Step(out NativeStatus wanted))
        {
            if (wanted == NativeStatus.WantWrite)
            {
                await Writability.WaitAsync(_socket.SafeHandle, cancellationToken).ConfigureAwait(false);
            }
            else
            {
                Check(await _receiver.ReceiveAsync(Memory<byte>.Empty, cancellationToken).ConfigureAwait(false));
            }
        }

        return Complete(kernelWanted);
    }

    /// <summary>Shakes hands, blocking; the socket's timeouts limit each wait.</summary>
    public TlsSession Run(bool kernelWanted)
    {
        while (!Step(out NativeStatus wanted))
        {
            if (wanted == NativeStatus.WantRead)
            {
                Check(_receiver.WaitReadable());
            }
            else if (!_socket.Poll(SocketTimeouts.ToTimeSpan(_socket.SendTimeout), SelectMode.SelectWrite))
            {
                throw TlsErrors.Socket("The TLS handshake failed", SocketError.TimedOut);
            }
        }

        return Complete(kernelWanted);
    }

    public void Dispose()
    {
        if (!_handedOver)
        {
            _connection.Dispose();
            _verifier.Certificate?.Dispose();
        }
    }

    public bool IsServer => _settings.IsServer;

    private bool Step(out NativeStatus wanted)
    {
        NativeResult result = _connection.Handshake(_verifier);
        wanted = result.Status;
        switch (wanted)
        {
            case NativeStatus.Ok:
                return true;
            case NativeStatus.WantRead:
            case NativeStatus.WantWrite:
                return false;
            default:
                // The verdict on the certificate is the cause; OpenSSL's error only echoes it.
                _verifier.Refusal?.Throw();
                throw TlsErrors.Handshake(result);
        }
    }

    private static void Check(SocketOutcome outcome)
    {
        // An error that only OpenSSL can read is progress: TLS 1.2 switches receiving before Finished, which then waits in
        // the kernel as a control record.
        if (outcome.Error != SocketError.Success && !outcome.IsForOpenSsl)
        {
            throw TlsErrors.Socket("The TLS handshake failed", outcome.Error);
        }
    }

    private TlsSession Complete(bool kernelWanted)
    {
        if (_verifier.Certificate is null)
        {
            _verifier.JudgeAbsence();
            _verifier.Refusal?.Throw();
        }

        Platform platform = Platform.Current;
        ConnectionInfo info = _connection.GetInfo();
        TlsSession session = new(_socket, _connection, _receiver, _settings, _verifier.Certificate, info, kernelWanted, platform);
        _handedOver = true;
        return session;
    }
}
