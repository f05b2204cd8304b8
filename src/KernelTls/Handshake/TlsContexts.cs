using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// The process's SSL_CTXs, one per distinct key, least recently used first out. Thread-safe. An evicted context is left to
/// its finalizer: a handshake that has just fetched it goes on undisturbed.
/// </summary>
internal static class TlsContexts
{
    internal const int Capacity = 128;

    private static readonly Dictionary<TlsContextKey, LinkedListNode<Entry>> s_entries = [];
    private static readonly LinkedList<Entry> s_byUse = new();

    /// <summary><see langword="null"/> with the reason where OpenSSL or the key says no.</summary>
    public static SafeTlsContextHandle? TryGet(TlsContextKey key, out KtlsFallbackReason reason)
    {
        reason = KtlsFallbackReason.None;
        lock (s_entries)
        {
            if (s_entries.TryGetValue(key, out LinkedListNode<Entry>? node))
            {
                s_byUse.Remove(node);
                s_byUse.AddLast(node);
                node.Value.RotateTicketKeysIfDue();
                return node.Value.Context;
            }
        }

        SafeTlsContextHandle? created = TryCreate(key, out reason);
        return created is null ? null : Add(key, created);
    }

    private static SafeTlsContextHandle Add(TlsContextKey key, SafeTlsContextHandle created)
    {
        lock (s_entries)
        {
            if (s_entries.TryGetValue(key, out LinkedListNode<Entry>? other))
            {
                // Another handshake was faster; its session tickets are the ones to share.
                created.Dispose();
                return other.Value.Context;
            }

            s_entries.Add(key, s_byUse.AddLast(new Entry(key, created, TimeProvider.System)));
            if (s_entries.Count > Capacity)
            {
                s_entries.Remove(s_byUse.First!.Value.Key);
                s_byUse.RemoveFirst();
            }

            return created;
        }
    }

    private static SafeTlsContextHandle? TryCreate(TlsContextKey key, out KtlsFallbackReason reason)
    {
        // Looking at the platform is also what binds the shim to OpenSSL.
        reason = Platform.Current.DirectReason;
        if (reason != KtlsFallbackReason.None)
        {
            return null;
        }

        string? cipherList = key.CipherList ?? DefaultCipherList.Value;
        if (cipherList is null)
        {
            reason = KtlsFallbackReason.RuntimeNotKnown;
            return null;
        }

        nint context = Create(key, cipherList);
        if (context == 0)
        {
            reason = KtlsFallbackReason.OpenSslRefusedOptions;
            return null;
        }

        return new SafeTlsContextHandle(context);
    }

    private static unsafe nint Create(TlsContextKey key, string cipherListText)
    {
        X509Certificate2[] chain = [];
        X509Certificate2[] announced = [];
        SafeEvpPKeyHandle? privateKey = null;
        if (key.Certificate is { } certificate)
        {
            chain = [certificate.TargetCertificate, .. certificate.IntermediateCertificates];
            privateKey = RuntimeInternals.KeyOf(certificate);
            announced = key.IsServer && RuntimeInternals.TrustOf(certificate) is { Announced: true } trust ? [.. trust.Roots] : [];
        }

        // A name of its own: no context resumes what another one has agreed.
        byte[] sessionIdContext = key.IsServer ? RandomNumberGenerator.GetBytes(32) : [];
        byte[] alpn = Encoding.Latin1.GetBytes(key.Alpn);
        bool referenced = false;
        using NativeCertificates certificates = new(chain);
        using NativeCertificates clientCas = new(announced);
        try
        {
            privateKey?.DangerousAddRef(ref referenced);
            fixed (byte* alpnBytes = alpn, sessionIdContextBytes = sessionIdContext)
            fixed (byte* cipherList = Text(cipherListText), cipherSuites = Text(key.CipherSuites), algorithms = Text(key.SignatureAlgorithms))
            {
                ContextOptions options = new()
                {
                    Role = key.IsServer ? 1 : 0,
                    Flags = key.Flags,
                    MinVersion = key.MinVersion,
                    MaxVersion = key.MaxVersion,
                    CipherList = cipherList,
                    CipherSuites = cipherSuites,
                    Alpn = alpnBytes,
                    AlpnLength = alpn.Length,
                    CertificateCount = certificates.Count,
                    Certificates = certificates.Count == 0 ? null : certificates.Blobs,
                    PrivateKey = privateKey?.DangerousGetHandle() ?? 0,
                    SessionIdContext = sessionIdContextBytes,
                    SessionIdContextLength = sessionIdContext.Length,
                    ClientCaCount = clientCas.Count,
                    ClientCas = clientCas.Count == 0 ? null : clientCas.Blobs,
                    SignatureAlgorithms = algorithms,
                    KeyLog = RuntimeTelemetry.LogsKeys ? &RuntimeTelemetry.OnKeys : null,
                };
                nint context = 0;
                NativeResult result;
                int errno = KtlsNative.KtlsNative_ContextCreate(&options, &context, &result);
                return errno == 0 && result.Status == NativeStatus.Ok ? context : 0;
            }
        }
        finally
        {
            if (referenced)
            {
                privateKey!.DangerousRelease();
            }
        }
    }

    /// <summary>NUL-terminated, or a null pointer once pinned.</summary>
    private static byte[]? Text(string? text) => text is null ? null : Encoding.ASCII.GetBytes(text + '\0');

    /// <summary>
    /// A context, and when its ticket keys were made. A key seals for two hours, as long as OpenSSL lets a session live, and opens
    /// what it has sealed for two more: no session that is still good is lost to a rotation. It happens when a handshake begins.
    /// </summary>
    internal sealed class Entry(TlsContextKey key, SafeTlsContextHandle context, TimeProvider clock)
    {
        internal static readonly TimeSpan TicketKeyLifetime = TimeSpan.FromHours(2);
        private long _rotated = clock.GetTimestamp();

        public TlsContextKey Key => key;

        public SafeTlsContextHandle Context => context;

        /// <summary>Inside the lock.</summary>
        public bool RotateTicketKeysIfDue()
        {
            if (!key.IsServer || clock.GetElapsedTime(_rotated) < TicketKeyLifetime)
            {
                return false;
            }

            // Without random bytes the key goes on, and the next handshake tries again.
            bool rotated = KtlsNative.KtlsNative_RotateTicketKeys(context) == 0;
            _rotated = rotated ? clock.GetTimestamp() : _rotated;
            return rotated;
        }
    }
}
