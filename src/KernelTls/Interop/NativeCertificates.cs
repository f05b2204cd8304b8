using System.Runtime.InteropServices;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Interop;

/// <summary>
/// Holds certificates in the form that the shim takes: an array of DER blobs in one block of native memory, for the
/// duration of a call.
/// </summary>
internal sealed unsafe class NativeCertificates : IDisposable
{
    public NativeCertificates(IReadOnlyList<X509Certificate2> certificates)
    {
        int size = certificates.Count * sizeof(Blob);
        foreach (X509Certificate2 certificate in certificates)
        {
            size += certificate.RawDataMemory.Length;
        }

        Count = certificates.Count;
        Blobs = (Blob*)NativeMemory.AllocZeroed((nuint)size);
        byte* data = (byte*)(Blobs + Count);
        for (int i = 0; i < Count; i++)
        {
            ReadOnlySpan<byte> der = certificates[i].RawDataMemory.Span;
            der.CopyTo(new Span<byte>(data, der.Length));
            Blobs[i].Data = data;
            Blobs[i].Length = der.Length;
            data += der.Length;
        }
    }

    public Blob* Blobs { get; private set; }

    public int Count { get; }

    public void Dispose()
    {
        NativeMemory.Free(Blobs);
        Blobs = null;
    }
}
