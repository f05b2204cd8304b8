using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>Caches the process's SSL_CTXs, one per distinct key. Thread-safe.</summary>
/// <remarks>
/// Contexts with a certificate live as long as its SslStreamCertificateContext, up to <see cref="Capacity"/> for each.
/// Of those without a certificate, the least recently used is evicted first. An evicted context is freed by its
/// finalizer, so a handshake that has just obtained it is not disturbed.
/// </remarks>
internal static class TlsContexts
{
    internal const int Capacity = 128;

    private static readonly Cache s_withoutCertificate = new();
    private static readonly ConditionalWeakTable<SslStreamCertificateContext, Cache> s_byCertificate = [];

    /// <summary>
    /// Returns the context for a key, or <see langword="null"/> and the reason if OpenSSL refuses its options.
    /// </summary>
    public static SafeTlsContextHandle? TryGet(TlsContextKey key, out KtlsFallbackReason reason)
    {
        reason = KtlsFallbackReason.None;
        Cache cache = key.Certificate is null ? s_withoutCertificate : s_byCertificate.GetValue(key.Certificate, static _ => new Cache());
        return cache.Find(key) ?? (TryCreate(key, out reason) is { } created ? cache.Add(key, created) : null);
    }

    private static SafeTlsContextHandle? TryCreate(TlsContextKey key, out KtlsFallbackReason reason)
    {
        // Detecting the platform also binds the shim to OpenSSL.
        reason = Platform.Current.DirectReason;
        if (reason != KtlsFallbackReason.None)
        {
            return null;
        }

        string? cipherList = key.CipherList ?? DefaultCipherList.Value;
        if (cipherList is null)
        {
            reason = KtlsFallbackReason.RuntimeNotSupported;
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

        // A random session ID context: no context resumes the sessions of another one.
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

    /// <summary>Returns NUL-terminated text, or null, which becomes a null pointer when pinned.</summary>
    private static byte[]? Text(string? text) => text is null ? null : Encoding.ASCII.GetBytes(text + '\0');

    private sealed class Cache
    {
        private readonly Dictionary<TlsContextKey, LinkedListNode<Entry>> _entries = [];
        private readonly LinkedList<Entry> _byUse = new();

        public SafeTlsContextHandle? Find(TlsContextKey key)
        {
            lock (_entries)
            {
                if (!_entries.TryGetValue(key, out LinkedListNode<Entry>? node))
                {
                    return null;
                }

                _byUse.Remove(node);
                _byUse.AddLast(node);
                node.Value.RotateTicketKeysIfDue();
                return node.Value.Context;
            }
        }

        public SafeTlsContextHandle Add(TlsContextKey key, SafeTlsContextHandle created)
        {
            lock (_entries)
            {
                if (_entries.TryGetValue(key, out LinkedListNode<Entry>? other))
                {
                    // Another handshake was faster. Its session tickets are the ones to share.
                    created.Dispose();
                    return other.Value.Context;
                }

                _entries.Add(key, _byUse.AddLast(new Entry(key, created, TimeProvider.System)));
                if (_entries.Count > Capacity)
                {
                    _entries.Remove(_byUse.First!.Value.Key);
                    _byUse.RemoveFirst();
                }

                return created;
            }
        }
    }

    /// <summary>Contains a context and the time when its ticket keys were created.</summary>
    /// <remarks>
    /// A key encrypts tickets for two hours, which is OpenSSL's session lifetime, and decrypts them for two more. A
    /// rotation therefore invalidates no session that is still valid. Keys are rotated when a handshake begins.
    /// </remarks>
    internal sealed class Entry(TlsContextKey key, SafeTlsContextHandle context, TimeProvider clock)
    {
        internal static readonly TimeSpan TicketKeyLifetime = TimeSpan.FromHours(2);
        private long _rotated = clock.GetTimestamp();

        public TlsContextKey Key => key;

        public SafeTlsContextHandle Context => context;

        /// <summary>Rotates the ticket keys if they are old enough. The caller must hold the lock.</summary>
        public bool RotateTicketKeysIfDue()
        {
            if (!key.IsServer || clock.GetElapsedTime(_rotated) < TicketKeyLifetime)
            {
                return false;
            }

            // Without random bytes the old key stays in use, and the next handshake tries again.
            bool rotated = KtlsNative.KtlsNative_RotateTicketKeys(context) == 0;
            _rotated = rotated ? clock.GetTimestamp() : _rotated;
            return rotated;
        }
    }
}
