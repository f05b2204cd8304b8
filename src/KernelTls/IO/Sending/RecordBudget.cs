using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.IO;

/// <summary>
/// Counts how many more records may be encrypted with the current sending key (RFC 8446, section 5.5). Guarded by the
/// sender's gate.
/// </summary>
/// <remarks>
/// The count is kept here because the kernel has no limit and OpenSSL does not see the records. A write takes one
/// record for each 16 KiB begun. A write that waited for space in the send buffer may have been split into more
/// records; the default limits leave room for that.
/// </remarks>
internal struct RecordBudget
{
    /// <summary>The payload size of a full record (RFC 8446, section 5.1).</summary>
    public const int RecordSize = 16 * 1024;

    private readonly long _limit;
    private long _left;
    private long _sent;

    public RecordBudget(long limit) => _limit = _left = limit;

    /// <summary>
    /// Returns the default limit. RFC 8446, section 5.5, permits 2^24.5 full records for AES-GCM, and RFC 9147, section
    /// 4.5.3, permits 2^23 for AES-CCM. ChaCha20-Poly1305 has no limit below that of the sequence number. TLS 1.2
    /// specifies none.
    /// </summary>
    public static long DefaultLimit(SslProtocols protocol, TlsCipherSuite suite) =>
        protocol != SslProtocols.Tls13 ? long.MaxValue : suite switch
        {
            TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256 => long.MaxValue,
            TlsCipherSuite.TLS_AES_128_GCM_SHA256 or TlsCipherSuite.TLS_AES_256_GCM_SHA384 => 1L << 24,
            _ => 1L << 22,
        };

    /// <summary>Gets the number of records sent with all keys. Can be read without the gate.</summary>
    public readonly long Sent => Volatile.Read(in _sent);

    /// <summary>Returns whether the key has records left for all of <paramref name="bytes"/>.</summary>
    public readonly bool Allows(long bytes) => Records(bytes) <= _left;

    /// <summary>Reserves records for as many of <paramref name="bytes"/> as may be sent, and returns how many that is.</summary>
    public long Reserve(long bytes)
    {
        long records = Math.Min(Records(bytes), _left);
        Count(records);
        return Math.Min(bytes, records * RecordSize);
    }

    /// <summary>Gives back the records of reserved bytes that were not sent.</summary>
    public void Refund(long reserved, long sent) => Count(Records(sent) - Records(reserved));

    /// <summary>Resets the count for a new key.</summary>
    public void Renew() => _left = _limit;

    private void Count(long records)
    {
        _left -= records;
        Volatile.Write(ref _sent, _sent + records);
    }

    private static long Records(long bytes) => (bytes + RecordSize - 1) / RecordSize;
}
