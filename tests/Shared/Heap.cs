using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>Measures the memory in use by this process: objects, and what OpenSSL and other native code have allocated.</summary>
internal static partial class Heap
{
    private const int Measurements = 3;

    /// <summary>The differences between two medians of the same are below this.</summary>
    private const double Tolerance = 1.05;

    /// <summary>
    /// Asserts that a connection of a mode uses no more memory than one of the stock stack. Compares medians, because something else of
    /// the process may allocate or free in the meantime.
    /// </summary>
    /// <param name="mode">The mode.</param>
    /// <param name="measure">Returns the bytes of a connection of a mode.</param>
    public static async Task AssertNoMoreThanStockAsync(TlsMode mode, Func<TlsMode, Task<double>> measure)
    {
        double[] stock = new double[Measurements];
        double[] ours = new double[Measurements];
        for (int i = 0; i < Measurements; i++)
        {
            stock[i] = await measure(TlsMode.Stock);
            ours[i] = await measure(mode);
        }

        string measured = $"{List(ours)} bytes a connection, the stock stack {List(stock)}";
        TestContext.Current.TestOutputHelper!.WriteLine(measured);
        Assert.True(Median(ours) <= Median(stock) * Tolerance, measured);

        static double Median(double[] values) => values.Order().ElementAt(Measurements / 2);
        static string List(double[] values) => string.Join(", ", values.Order().Select(v => $"{v:F0}"));
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
