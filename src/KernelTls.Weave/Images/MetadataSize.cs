namespace KernelTls.Weave.Images;

/// <summary>The sizes that determine the width of indices: the rows of each table, and which heaps need four bytes.</summary>
/// <param name="Rows">The number of rows of each table.</param>
/// <param name="HeapSizes">The bits of the tables' header (ECMA-335, II.24.2.6).</param>
internal readonly record struct MetadataSize(int[] Rows, byte HeapSizes)
{
    private const byte WideStrings = 1, WideGuids = 2, WideBlobs = 4;

    public bool HasWideStrings => (HeapSizes & WideStrings) != 0;

    public bool HasWideGuids => (HeapSizes & WideGuids) != 0;

    public bool HasWideBlobs => (HeapSizes & WideBlobs) != 0;

    /// <summary>Returns the bits for heaps of these lengths. A heap that was wide stays wide.</summary>
    public byte HeapSizesFor(int strings, int blobs) =>
        (byte)(HeapSizes | (strings >= 0x10000 ? WideStrings : 0) | (blobs >= 0x10000 ? WideBlobs : 0));
}
