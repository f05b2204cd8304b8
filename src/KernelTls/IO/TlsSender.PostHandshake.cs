using KernelTls.Interop;

namespace KernelTls.IO;

// A client that is asked for its certificate after the handshake: nothing else may be sent until the answer is out.
internal sealed partial class TlsSender
{
    /// <summary>Sends the answer that the peer's CertificateRequest waits for (RFC 8446, section 4.6.2), behind the data in progress.</summary>
    public async Task AnswerCertificateRequestAsync(CancellationToken cancellationToken)
    {
        await _gate.WaitAsync(cancellationToken).ConfigureAwait(false);
        bool sent = false;
        try
        {
            while (true)
            {
                // Reading nothing is what makes OpenSSL write. How else it ends, the next read tells.
                NativeStatus status = _connection.Read(Span<byte>.Empty).Status;
                if (status == NativeStatus.WantWrite)
                {
                    await WaitWritableAsync(cancellationToken).ConfigureAwait(false);
                }
                else if (status != NativeStatus.WantCertificate)
                {
                    break;
                }
            }

            sent = true;
        }
        finally
        {
            Leave(sent);
        }
    }

    /// <summary>Keeps everybody else from sending while <paramref name="work"/> runs.</summary>
    /// <exception cref="NotSupportedException">A write is pending.</exception>
    public async Task RunAloneAsync(Func<Task> work, CancellationToken cancellationToken)
    {
        Enter();
        try
        {
            await _gate.WaitAsync(cancellationToken).ConfigureAwait(false);
            bool sent = false;
            try
            {
                ThrowIfNotOpen();
                await work().ConfigureAwait(false);
                sent = true;
            }
            catch (Exception e) when (e is InvalidOperationException or NotSupportedException)
            {
                // Refused, with the connection as it was.
                sent = true;
                throw;
            }
            finally
            {
                Leave(sent);
            }
        }
        finally
        {
            ExitWrite();
        }
    }
}
