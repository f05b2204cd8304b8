using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tests;

/// <summary>Changes a copy of the shim (libKernelTls.Native.so) into one of another build.</summary>
internal static class OtherShim
{
    /// <summary>Takes exported functions away, which an older build does not have.</summary>
    public static void RemoveExports(string path, params string[] names)
    {
        byte[] image = File.ReadAllBytes(path);
        foreach (string name in names)
        {
            Replace(image, Encoding.ASCII.GetBytes($"\0{name}\0"), Encoding.ASCII.GetBytes($"\0{name.ToUpperInvariant()}\0"));
        }

        File.WriteAllBytes(path, image);
    }

    /// <summary>Changes the interface that the shim names (KtlsNative_GetInterface).</summary>
    public static void SetInterface(string path, ulong current, ulong other)
    {
        byte[] image = File.ReadAllBytes(path);
        Span<byte> from = stackalloc byte[sizeof(ulong)];
        Span<byte> to = stackalloc byte[sizeof(ulong)];
        BinaryPrimitives.WriteUInt64LittleEndian(from, current);
        BinaryPrimitives.WriteUInt64LittleEndian(to, other);
        Replace(image, from, to);
        File.WriteAllBytes(path, image);
    }

    private static void Replace(Span<byte> image, ReadOnlySpan<byte> from, ReadOnlySpan<byte> to)
    {
        int count = 0;
        for (int at; (at = image.IndexOf(from)) >= 0; count++)
        {
            to.CopyTo(image[at..]);
        }

        Assert.NotEqual(0, count);
    }
}
