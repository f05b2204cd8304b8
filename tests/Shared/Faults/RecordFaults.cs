namespace KernelTls.Tests;

/// <summary>Contains all faults in records of an established connection.</summary>
internal static partial class RecordFaults
{
    private const int HeaderSize = 5;
    private const int MaxContent = 16384;

    /// <summary>A length that exceeds any length in a header.</summary>
    private const int Beyond = 66_000;

    public static IReadOnlyList<RecordFault> All { get; } =
        [.. Changed().Concat(Unprotected()).Select(f => f with { IsUnauthentic = true }), .. Alerts(), .. Messages(), .. KeyUpdates(), .. Contents(), .. Sequences(), .. Ends()];

    /// <summary>
    /// Gets one fault for each error of the kernel's parser, one for its decryption, and one for a control record.
    /// </summary>
    public static IReadOnlyList<RecordFault> OneOfEach { get; } =
        [Named("major version"), Named("unprotected type 23, length 1"), Named("unprotected type 23, length 65535"), Named("last byte"), Named("alert 2/80")];

    public static RecordFault Named(string name) => All.Single(f => f.Name == name);

    private static byte[] Flip(byte[] record, int position, byte bits)
    {
        byte[] changed = [.. record];
        changed[position] ^= bits;
        return changed;
    }

    private static byte[] Unprotected(byte type, int length) => TlsPeer.Plain(type, Filler(length));

    private static byte[] Join(IEnumerable<byte[]> parts) => [.. parts.SelectMany(p => p)];

    /// <summary>Returns bytes without a meaning, always the same.</summary>
    private static byte[] Filler(int length)
    {
        byte[] filler = new byte[length];
        new Random(23).NextBytes(filler);
        return filler;
    }
}
