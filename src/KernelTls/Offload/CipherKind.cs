using System.Net.Security;

namespace KernelTls.Offload;

/// <summary>
/// Specifies the record ciphers that the kernel implements, in the order of the native probe's tables.
/// </summary>
internal enum CipherKind
{
    None = -1,
    Aes128Gcm = 0,
    Aes256Gcm = 1,
    Aes128Ccm = 2,
    ChaCha20Poly1305 = 3,
}

internal static class CipherKinds
{
    /// <summary>
    /// Returns the record cipher of a suite, or <see cref="CipherKind.None"/> if the kernel does not implement it (CBC,
    /// CCM_8, ARIA...).
    /// </summary>
    public static CipherKind Of(TlsCipherSuite suite)
    {
        // The names are those of the IANA registry. The record cipher is the part between WITH_ (TLS 1.2) or TLS_ (TLS
        // 1.3) and the hash, so the enumeration itself serves as the table.
        string? name = Enum.GetName(suite);
        if (name is null)
        {
            return CipherKind.None;
        }

        int with = name.IndexOf("_WITH_", StringComparison.Ordinal);
        ReadOnlySpan<char> cipher = with >= 0 ? name.AsSpan(with + "_WITH_".Length) : name.AsSpan("TLS_".Length);
        return cipher switch
        {
            "AES_128_GCM_SHA256" => CipherKind.Aes128Gcm,
            "AES_256_GCM_SHA384" => CipherKind.Aes256Gcm,
            "AES_128_CCM" or "AES_128_CCM_SHA256" => CipherKind.Aes128Ccm,
            "CHACHA20_POLY1305_SHA256" => CipherKind.ChaCha20Poly1305,
            _ => CipherKind.None,
        };
    }
}
