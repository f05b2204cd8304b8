using System.Globalization;
using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>Measures the memory in use by this process: objects, and what OpenSSL and other native code have allocated.</summary>
internal static partial class Heap
{
    private const string CaseVariable = "KERNELTLS_HEAP_CASE";
    private const string ResultVariable = "KERNELTLS_HEAP_RESULT";

    /// <summary>The differences between two measurements of the same are below this.</summary>
    private const double Tolerance = 1.05;

    /// <summary>
    /// Asserts that a connection of a mode uses no more memory than one of the stock stack. Measures in a separate process, because the
    /// runtime's pools free over time what earlier tests have used.
    /// </summary>
    /// <param name="mode">The mode.</param>
    /// <param name="sent">How many bytes of a ClientHello arrive.</param>
    /// <param name="callback">Whether a callback chooses the server's options.</param>
    /// <param name="tests">The class whose explicit test <paramref name="measurement"/> calls <see cref="ReportAsync"/>.</param>
    /// <param name="measurement">The name of that test.</param>
    public static async Task AssertNoMoreThanStockAsync(TlsMode mode, int sent, bool callback, Type tests, string measurement)
    {
        using TemporaryDirectory directory = new();
        await OwnProcess.RunAsync(tests, measurement, (CaseVariable, $"{mode} {sent} {callback}"), (ResultVariable, directory["bytes"]));
        string[] bytes = await File.ReadAllLinesAsync(directory["bytes"], TestContext.Current.CancellationToken);
        double stock = double.Parse(bytes[0], CultureInfo.InvariantCulture);
        double ours = double.Parse(bytes[1], CultureInfo.InvariantCulture);
        string measured = $"{ours:F0} bytes a connection, the stock stack {stock:F0}";
        TestContext.Current.TestOutputHelper!.WriteLine(measured);
        Assert.True(stock > 0 && ours <= stock * Tolerance, measured);
    }

    /// <summary>Measures the case that this process has been started for.</summary>
    /// <param name="measure">
    /// Opens connections of a mode, after which so many bytes arrive, to a server with or without a callback. Returns the bytes of one of
    /// them, and what closes them. They stay open until all is measured: nothing is freed in the meantime.
    /// </param>
    public static async Task ReportAsync(Func<TlsMode, int, bool, Task<(double Bytes, IAsyncDisposable Connections)>> measure)
    {
        string[] parts = Environment.GetEnvironmentVariable(CaseVariable)!.Split(' ');
        int sent = int.Parse(parts[1], CultureInfo.InvariantCulture);
        bool callback = bool.Parse(parts[2]);

        (double stock, IAsyncDisposable stockConnections) = await measure(TlsMode.Stock, sent, callback);
        await using (stockConnections)
        {
            (double ours, IAsyncDisposable connections) = await measure(Enum.Parse<TlsMode>(parts[0]), sent, callback);
            await using (connections)
            {
                string[] lines = [stock.ToString(CultureInfo.InvariantCulture), ours.ToString(CultureInfo.InvariantCulture)];
                await File.WriteAllLinesAsync(Environment.GetEnvironmentVariable(ResultVariable)!, lines);
            }
        }
    }

    /// <summary>Returns the bytes in use after a full garbage collection.</summary>
    public static long Measure()
    {
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        MallocInfo native = mallinfo2();
        return GC.GetTotalMemory(forceFullCollection: true) + (long)native.Used + (long)native.Mapped;
    }

    [LibraryImport("libc")]
    private static partial MallocInfo mallinfo2();

    /// <summary>Mirrors struct mallinfo2 (mallinfo(3)).</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct MallocInfo
    {
        public nuint Arena;
        public nuint FreeChunks;
        public nuint FastChunks;
        public nuint MappedChunks;
        public nuint Mapped;
        public nuint Unused;
        public nuint FastFree;
        public nuint Used;
        public nuint Free;
        public nuint Top;
    }
}
