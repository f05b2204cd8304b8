namespace KernelTls.IO;

// Certificates after the handshake (RFC 8446, section 4.6.2): a client's answer, and a server's turn at the socket.
internal sealed partial class TlsReceiver
{
    /// <summary>Keeps everybody else from reading while <paramref name="work"/> takes records; OpenSSL may then hold data.</summary>
    /// <exception cref="NotSupportedException">A read is pending.</exception>
    public async Task RunAloneAsync(Func<Task> work)
    {
        Enter();
        try
        {
            _source = _source is Source.Wait or Source.Socket ? Source.OpenSsl : _source;
            await work().ConfigureAwait(false);
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            Leave();
        }
    }

    /// <summary>As <see cref="OvercomeAsync"/>, blocking; the socket's ReceiveTimeout limits the wait.</summary>
    private void Overcome() =>
        SocketTimeouts.Within(_socket.Socket.ReceiveTimeout, "Unable to read data from the transport connection", OvercomeAsync);

    private async Task OvercomeAsync(CancellationToken cancellationToken)
    {
        if (_source == Source.OpenSslAfterRoom)
        {
            await Readiness.WaitToWriteAsync(_connection.Socket, cancellationToken).ConfigureAwait(false);
        }
        else
        {
            await _sender.AnswerCertificateRequestAsync(cancellationToken).ConfigureAwait(false);
            _certificateShown();
        }

        _source = Source.OpenSsl;
    }
}
