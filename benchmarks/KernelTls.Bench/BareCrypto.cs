using System.Security.Cryptography;

namespace KernelTls.Bench;

/// <summary>
/// Measures the cost of encrypting and decrypting one byte without any other work, with AES-256-GCM in records of 16
/// KiB.
/// </summary>
internal static class BareCrypto
{
    private const int RecordSize = 16 * 1024;
    private const int Records = 200;
    private const double InstructionsPerMillisecond = 1_000_000;

    public static double MeasurePerByte()
    {
        using AesGcm cipher = new(new byte[32], AesGcm.TagByteSizes.MaxSize);
        byte[] nonce = new byte[AesGcm.NonceByteSizes.MaxSize];
        byte[] tag = new byte[AesGcm.TagByteSizes.MaxSize];
        byte[] plaintext = new byte[RecordSize];
        byte[] ciphertext = new byte[RecordSize];
        TimeSpan used = default;
        for (int round = 0; round < 2; round++)
        {
            TimeSpan before = Environment.CpuUsage.TotalTime;
            for (int i = 0; i < Records; i++)
            {
                cipher.Encrypt(nonce, plaintext, ciphertext, tag);
                cipher.Decrypt(nonce, ciphertext, tag, plaintext);
            }

            used = Environment.CpuUsage.TotalTime - before;
        }

        return used.TotalMilliseconds * InstructionsPerMillisecond / ((double)Records * RecordSize);
    }
}
