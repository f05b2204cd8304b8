using System.Security.Cryptography;

namespace KernelTls.Soak;

/// <summary>Provides payloads that are cheap to create, and their hashes.</summary>
internal static class Payload
{
    public const int MaxSize = 1 << 20;
    public const int HashSize = SHA256.HashSizeInBytes;

    private static readonly byte[] s_block = RandomNumberGenerator.GetBytes((2 * MaxSize) + 7);

    /// <summary>Returns random bytes, which must not be changed.</summary>
    public static ReadOnlyMemory<byte> Take(Random random, int size) => s_block.AsMemory(random.Next(s_block.Length - size), size);

    /// <summary>Returns a size: mostly small, sometimes the largest, and often close to a record's.</summary>
    public static int ChooseSize(Random random) => random.Next(8) switch
    {
        0 => random.Next(MaxSize),
        1 => 16_384 + random.Next(-2, 3),
        2 => random.Next(3),
        3 or 4 => random.Next(100_000),
        _ => random.Next(4_000),
    };

    /// <summary>Returns the hash of <paramref name="payload"/> in hexadecimal.</summary>
    public static string Hash(ReadOnlySpan<byte> payload) => Convert.ToHexString(SHA256.HashData(payload));

    /// <summary>Verifies that the payload has this hash.</summary>
    /// <exception cref="InvalidDataException">The hash differs: bytes were lost, added, moved or changed.</exception>
    public static void Verify(ReadOnlySpan<byte> payload, string? hash, string what)
    {
        if (Hash(payload) != hash)
        {
            throw new InvalidDataException($"{what}: {payload.Length} bytes do not have the hash that they were sent with.");
        }
    }
}
