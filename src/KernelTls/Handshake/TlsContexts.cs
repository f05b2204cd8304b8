using System.Net.Security;
using System.Runtime.InteropServices;
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

            s_entries.Add(key, s_byUse.AddLast(new Entry(key, created)));
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

        SafeHandle? privateKey = null;
        byte[][] chain = [];
        if (key.Certificate is { } certificate)
        {
            privateKey = PrivateKey.TryOpen(certificate.TargetCertificate);
            if (privateKey is null)
            {
                reason = KtlsFallbackReason.PrivateKeyNotUsable;
                return null;
            }

            chain = [certificate.TargetCertificate.RawData, .. certificate.IntermediateCertificates.Select(c => c.RawData)];
        }

        using (privateKey)
        {
            nint context = Create(key, chain, privateKey?.DangerousGetHandle() ?? 0);
            if (context == 0)
            {
                reason = KtlsFallbackReason.OpenSslRefusedOptions;
                return null;
            }

            return new SafeTlsContextHandle(context);
        }
    }

    private static unsafe nint Create(TlsContextKey key, byte[][] chain, nint privateKey)
    {
        byte[] alpn = Encoding.Latin1.GetBytes(key.Alpn);
        byte[] cipherList = Encoding.ASCII.GetBytes(key.CipherList + '\0');
        byte[]? cipherSuites = key.CipherSuites is null ? null : Encoding.ASCII.GetBytes(key.CipherSuites + '\0');

        // One array holds all certificates, so that one pin holds them all still.
        byte[] der = [.. chain.SelectMany(c => c)];
        Blob[] blobs = new Blob[chain.Length];
        fixed (byte* alpnBytes = alpn, cipherListText = cipherList, cipherSuitesText = cipherSuites, derBytes = der)
        fixed (Blob* certificates = blobs)
        {
            int offset = 0;
            for (int i = 0; i < chain.Length; i++)
            {
                blobs[i].Data = derBytes + offset;
                blobs[i].Length = chain[i].Length;
                offset += chain[i].Length;
            }

            ContextOptions options = new()
            {
                Role = key.IsServer ? 1 : 0,
                Flags = key.Flags,
                MinVersion = key.MinVersion,
                MaxVersion = key.MaxVersion,
                CipherList = cipherListText,
                CipherSuites = cipherSuitesText,
                Alpn = alpnBytes,
                AlpnLength = alpn.Length,
                CertificateCount = blobs.Length,
                Certificates = certificates,
                PrivateKey = privateKey,
            };
            nint context = 0;
            NativeResult result;
            int errno = KtlsNative.KtlsNative_ContextCreate(&options, &context, &result);
            return errno == 0 && result.Status == NativeStatus.Ok ? context : 0;
        }
    }

    private sealed record Entry(TlsContextKey Key, SafeTlsContextHandle Context);
}
