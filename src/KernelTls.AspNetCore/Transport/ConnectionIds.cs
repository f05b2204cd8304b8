namespace KernelTls.AspNetCore.Transport;

/// <summary>
/// Creates connection identifiers like Kestrel's: 13 digits of base 32 that count up from the start of the process.
/// </summary>
internal static class ConnectionIds
{
    private const string Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
    private const int Length = 13;

    // Kestrel's identifiers begin with 0. This bit distinguishes ours.
    private static long s_last = DateTime.UtcNow.Ticks | (1L << 60);

    public static string Next() => string.Create(Length, Interlocked.Increment(ref s_last), static (text, id) =>
    {
        for (int i = 0; i < text.Length; i++)
        {
            text[i] = Digits[(int)(id >> (5 * (Length - 1 - i))) & 31];
        }
    });
}
