namespace KernelTls.Tests;

/// <summary>Runs one body on SslStream and in the mode under test. The results must be equal.</summary>
internal static class SideBySide
{
    /// <summary>Returns the result of the body, which is the same in the mode as on SslStream.</summary>
    public static async Task<T> RunAsync<T>(TlsMode mode, Func<TlsMode, Task<T>> body, string what = "")
    {
        T actual = await body(mode);
        if (mode != TlsMode.Stock)
        {
            T expected = await body(TlsMode.Stock);
            Assert.True(Equal(expected, actual), $"{what}\nSslStream: {Text(expected)}\n{mode}: {Text(actual)}");
        }

        return actual;
    }

    private static bool Equal<T>(T expected, T actual) => expected is string[] texts
        ? texts.AsSpan().SequenceEqual(actual as string[])
        : EqualityComparer<T>.Default.Equals(expected, actual);

    private static string Text<T>(T value) => value is string[] texts ? string.Join(", ", texts) : $"{value}";
}
