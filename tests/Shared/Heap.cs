using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>Measures the memory in use by this process: objects, and what OpenSSL and other native code have allocated.</summary>
internal static partial class Heap
{
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
