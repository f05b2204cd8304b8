using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.IO;

/// <summary>
/// How many more records may be encrypted with the present sending key (RFC 8446, section 5.5). Nobody else counts them: the
/// kernel has no limit, and OpenSSL does not see the records. Belongs to whoever holds the sender's gate.
/// </summary>
/// <remarks>
/// A write takes one record for each 16 KiB begun. One that had to wait for room may have been cut into more, so it is
/// charged twice; the default limits leave room for that.
/// </remarks>
internal struct RecordBudget
{
    /// <summary>Payload of a full record (RFC 8446, section 5.1).</summary>
    public const int RecordSize = 16 * 1024;

    private readonly long _limit;
    private long _left;

    public RecordBudget(long limit) => _limit = _left = limit;

    /// <summary>
    /// RFC 8446, section 5.5, allows AES-GCM 2^24.5 full records, RFC 9147, section 4.5.3, AES-CCM 2^23; ChaCha20-Poly1305
    /// has no limit below that of the sequence number. TLS 1.2 states none.
    /// </summary>
    public static long DefaultLimit(SslProtocols protocol, TlsCipherSuite suite) =>
        protocol != SslProtocols.Tls13 ? long.MaxValue : suite switch
        {
            TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256 => long.MaxValue,
            TlsCipherSuite.TLS_AES_128_GCM_SHA256 or TlsCipherSuite.TLS_AES_256_GCM_SHA384 => 1L << 24,
            _ => 1L << 22,
        };

    /// <summary>How many of <paramref name="bytes"/> may go out now.</summary>
    public readonly long Allow(long bytes) => Records(bytes) <= _left ? bytes : _left * RecordSize;

    /// <summary>Takes the records for all of <paramref name="bytes"/>, or none.</summary>
    public bool TryTake(long bytes)
    {
        long records = Records(bytes);
        if (records > _left)
        {
            return false;
        }

        _left -= records;
        return true;
    }

    /// <summary>Takes records that went out.</summary>
    public void Take(long bytes) => _left -= Math.Min(Records(bytes), _left);

    /// <summary>The key is new.</summary>
    public void Renew() => _left = _limit;

    private static long Records(long bytes) => (bytes + RecordSize - 1) / RecordSize;
}
