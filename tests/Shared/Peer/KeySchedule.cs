using System.Security.Cryptography;
using System.Text;

namespace KernelTls.Tests;

/// <summary>Derives keys with SHA-256 (RFC 8446, section 7.1; RFC 5246, section 5).</summary>
internal static class KeySchedule
{
    public const int HashSize = 32;

    public static byte[] Extract(byte[] salt, byte[] secret) => HKDF.Extract(HashAlgorithmName.SHA256, secret, salt);

    public static byte[] ExpandLabel(byte[] secret, string label, byte[] context, int length)
    {
        byte[] name = Encoding.ASCII.GetBytes("tls13 " + label);
        byte[] info = [(byte)(length >> 8), (byte)length, (byte)name.Length, .. name, (byte)context.Length, .. context];
        return HKDF.Expand(HashAlgorithmName.SHA256, secret, length, info);
    }

    /// <summary>Computes Derive-Secret of the messages so far.</summary>
    public static byte[] Derive(byte[] secret, string label, IEnumerable<byte> transcript) =>
        ExpandLabel(secret, label, SHA256.HashData([.. transcript]), HashSize);

    /// <summary>Computes the contents of a TLS 1.3 Finished.</summary>
    public static byte[] Verify(byte[] secret, IEnumerable<byte> transcript) =>
        HMACSHA256.HashData(ExpandLabel(secret, "finished", [], HashSize), SHA256.HashData([.. transcript]));

    /// <summary>Computes the pseudo-random function of TLS 1.2.</summary>
    public static byte[] Prf(byte[] secret, string label, byte[] seed, int length)
    {
        byte[] labelled = [.. Encoding.ASCII.GetBytes(label), .. seed];
        byte[] a = labelled;
        List<byte> output = [];
        while (output.Count < length)
        {
            a = HMACSHA256.HashData(secret, a);
            output.AddRange(HMACSHA256.HashData(secret, (byte[])[.. a, .. labelled]));
        }

        return [.. output[..length]];
    }
}
