using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.IO;

// The calls of the handshake: its steps, its pauses, and its results.
internal partial class TlsConnection
{
    /// <summary>Performs one handshake step. The verifier is called back during it.</summary>
    public unsafe NativeResult Handshake(PeerVerifier verifier) => RunVerifiedStep(verifier, &KtlsNative.KtlsNative_Handshake, out _);

    /// <summary>
    /// Performs one step of requesting the client's certificate after the handshake (RFC 8446, section 4.6.2).
    /// </summary>
    /// <returns>False if the certificate cannot be requested on this connection.</returns>
    public unsafe bool TryRequestCertificate(PeerVerifier verifier, out NativeResult result)
    {
        result = RunVerifiedStep(verifier, &KtlsNative.KtlsNative_RequestCertificate, out bool supported);
        return supported;
    }

    /// <summary>
    /// Handles a failed wait for the socket to be readable. If the kernel decrypts, OpenSSL gets the errno of a record that is not data:
    /// in TLS 1.2 the kernel receives before Finished arrives, which then waits there as a control record.
    /// </summary>
    /// <param name="receiver">The receiver of the socket.</param>
    /// <param name="failed">What has failed if the connection is lost, for the exception.</param>
    /// <param name="failure">The failure of the wait.</param>
    /// <exception cref="IOException">The connection is lost.</exception>
    public void WaitFailed(SocketReceiver receiver, string failed, SocketException failure)
    {
        SocketReceiveResult result = receiver.Complete(0, failure.SocketErrorCode);
        if (result.RecordErrno == 0)
        {
            throw TlsErrors.Socket(failed, result.Error);
        }

        ReceiveFailed(result.RecordErrno);
    }

    private unsafe NativeResult RunVerifiedStep(
        PeerVerifier verifier,
        delegate*<SafeTlsConnectionHandle, int, delegate* unmanaged<nint, nint*, int, NativeStaple, nint, int>, nint, NativeResult*, int>
            step,
        out bool supported)
    {
        using VerifiedStep verified = new(verifier, _socket);
        GCHandle state = GCHandle.Alloc(verified);
        try
        {
            NativeResult result;
            int errno;
            lock (_lock)
            {
                errno = step(_handle, verified.Descriptor, &VerifiedStep.OnVerify, GCHandle.ToIntPtr(state), &result);
            }

            verified.ThrowIfSocketClosed();

            supported = errno != Errno.NotSupported;
            if (supported)
            {
                Check(errno);
            }

            return result;
        }
        finally
        {
            state.Free();
        }
    }

    /// <summary>Returns the client's offer, while the handshake is paused at the ClientHello.</summary>
    public unsafe SslClientHelloInfo GetClientHello()
    {
        ClientHelloData hello;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_GetClientHello(_handle, &hello));
        }

        return new SslClientHelloInfo(
            ClientHelloParser.ReadServerName(((ReadOnlySpan<byte>)hello.ServerName)[..hello.ServerNameLength]),
            hello.VersionsLength < 0
                ? ClientHelloParser.ToProtocol(hello.LegacyVersion)
                : ClientHelloParser.ReadVersions(((ReadOnlySpan<byte>)hello.Versions)[..hello.VersionsLength]));
    }

    /// <summary>Continues the handshake, paused at the ClientHello, with another SSL_CTX.</summary>
    public unsafe void SwitchContext(SafeTlsContextHandle context)
    {
        NativeResult result;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_SwitchContext(_handle, context, &result));
        }

        if (result.Status != NativeStatus.Ok)
        {
            throw TlsErrors.Handshake(result);
        }
    }

    /// <summary>Ends the handshake, paused at the ClientHello, with an alert, if the socket accepts it.</summary>
    public unsafe void Abort(TlsAlert alert)
    {
        NativeResult result;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_AbortHandshake(_handle, _socket, (int)alert, &result));
        }
    }

    /// <summary>
    /// Sets the OCSP response to staple to the server's certificate (RFC 6066, section 8). A response that OpenSSL
    /// cannot staple is ignored.
    /// </summary>
    public unsafe void SetOcspResponse(byte[] response)
    {
        const int Limit = 16000;
        if (response.Length is > 0 and <= Limit)
        {
            fixed (byte* bytes = response)
            {
                lock (_lock)
                {
                    Check(KtlsNative.KtlsNative_SetOcspResponse(_handle, bytes, response.Length));
                }
            }
        }
    }

    /// <summary>Returns the names of the issuers that the server accepts, in DER.</summary>
    public unsafe List<byte[]> GetAcceptableIssuers() => FetchAll(&KtlsNative.KtlsNative_GetAcceptableIssuer);

    /// <summary>Returns the peer's certificates, leaf first. The caller must dispose them.</summary>
    public unsafe X509Certificate2[] GetPeerCertificates()
    {
        List<X509Certificate2> all = [];
        lock (_lock)
        {
            nint certificate;
            int errno;
            while ((errno = KtlsNative.KtlsNative_GetPeerCertificate(_handle, all.Count, &certificate)) == 0)
            {
                // The constructor takes its own reference.
                all.Add(new X509Certificate2(certificate));
            }

            if (errno != Errno.NoData)
            {
                Check(errno);
            }
        }

        return [.. all];
    }

    /// <summary>Returns the Finished message of this end or of the peer.</summary>
    public unsafe byte[] GetFinished(bool ofPeer) =>
        Fetch(&KtlsNative.KtlsNative_GetFinished, ofPeer ? 1 : 0) ?? throw new InvalidOperationException("The handshake has not ended.");

    /// <summary>
    /// Continues the client's handshake, paused at the server's CertificateRequest, with this certificate or none.
    /// </summary>
    public unsafe void UseCertificate(SslStreamCertificateContext? certificate)
    {
        SafeEvpPKeyHandle? key = certificate is null ? null : RuntimeInternals.KeyOf(certificate);
        bool referenced = false;
        using NativeCertificates chain = new(
            certificate is null ? [] : [certificate.TargetCertificate, .. certificate.IntermediateCertificates]);
        NativeResult result;
        try
        {
            key?.DangerousAddRef(ref referenced);
            lock (_lock)
            {
                Check(KtlsNative.KtlsNative_UseCertificate(
                    _handle, chain.Count == 0 ? null : chain.Blobs, chain.Count, key?.DangerousGetHandle() ?? 0, &result));
            }
        }
        finally
        {
            if (referenced)
            {
                key!.DangerousRelease();
            }
        }

        if (result.Status != NativeStatus.Ok)
        {
            throw TlsErrors.Handshake(result);
        }
    }

    /// <summary>Offers a session in the client's handshake, which must not have begun.</summary>
    public void UseSession(SafeTlsSessionHandle session)
    {
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_UseSession(_handle, session));
        }
    }

    /// <summary>
    /// Returns the newest session that the server has sent since the last call, or <see langword="null"/>.
    /// </summary>
    public unsafe SafeTlsSessionHandle? TakeSession()
    {
        nint session = 0;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_TakeSession(_handle, &session));
        }

        return session == 0 ? null : new SafeTlsSessionHandle(session);
    }

    private unsafe List<byte[]> FetchAll(delegate*<SafeTlsConnectionHandle, int, byte*, int, int*, int> fetch)
    {
        List<byte[]> all = [];
        while (Fetch(fetch, all.Count) is { } one)
        {
            all.Add(one);
        }

        return all;
    }

    /// <summary>Gets the size, then the bytes. Returns <see langword="null"/> if there is no such item.</summary>
    private unsafe byte[]? Fetch(delegate*<SafeTlsConnectionHandle, int, byte*, int, int*, int> fetch, int index)
    {
        lock (_lock)
        {
            int length;
            int errno = fetch(_handle, index, null, 0, &length);
            if (errno == Errno.NoData)
            {
                return null;
            }

            if (errno != Errno.Range)
            {
                Check(errno);
            }

            byte[] bytes = new byte[length];
            fixed (byte* buffer = bytes)
            {
                Check(fetch(_handle, index, buffer, length, &length));
            }

            return bytes;
        }
    }
}
