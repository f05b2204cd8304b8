using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;

namespace KernelTls.Weave.Images;

/// <summary>Removes the native code of an assembly that was compiled ahead of time (ReadyToRun). The runtime then compiles its IL.</summary>
/// <remarks>https://github.com/dotnet/runtime/blob/main/docs/design/coreclr/botr/readytorun-format.md</remarks>
internal static class ReadyToRun
{
    private const uint Signature = 0x00525452;
    private const int Component = 0x20;
    private const int LinuxMachine = 0x7B79;

    /// <summary>Returns whether an assembly has native code of this kind.</summary>
    public static bool IsIn(PEReader image) => image.PEHeaders.CorHeader is { ManagedNativeHeaderDirectory.Size: not 0 };

    /// <summary>Returns the assembly as IL alone, with the native code as unused bytes.</summary>
    /// <param name="image">An assembly with native code.</param>
    /// <exception cref="UnsupportedImageException">Its native code is not its own.</exception>
    public static byte[] Remove(byte[] image)
    {
        const int Export = 0, Import = 1, Exceptions = 3, Relocations = 5, ImportAddresses = 12;
        const int Flags = 16, NativeHeader = 64;
        using PEReader pe = new(new MemoryStream(image));
        PEHeaders headers = pe.PEHeaders;
        BlobReader native = pe.GetSectionData(headers.CorHeader!.ManagedNativeHeaderDirectory.RelativeVirtualAddress).GetReader();
        if (native.ReadUInt32() != Signature)
        {
            throw new UnsupportedImageException("its native code is of a kind that is not known here");
        }

        _ = native.ReadInt32();
        if ((native.ReadInt32() & Component) != 0)
        {
            throw new UnsupportedImageException("its native code is in a composite image, together with that of other assemblies");
        }

        CheckPositions(pe);
        byte[] result = [.. image];
        int machine = BinaryPrimitives.ReadUInt16LittleEndian(result.AsSpan(headers.CoffHeaderStartOffset));
        if (!Enum.IsDefined((Machine)machine))
        {
            BinaryPrimitives.WriteUInt16LittleEndian(result.AsSpan(headers.CoffHeaderStartOffset), (ushort)(machine ^ LinuxMachine));
        }

        int directories = headers.PEHeaderStartOffset + (headers.PEHeader!.Magic == PEMagic.PE32 ? 96 : 112);
        foreach (int directory in (ReadOnlySpan<int>)[Export, Import, Exceptions, Relocations, ImportAddresses])
        {
            result.AsSpan(directories + (8 * directory), 8).Clear();
        }

        Span<byte> cli = result.AsSpan(headers.CorHeaderStartOffset);
        CorFlags flags = (CorFlags)BinaryPrimitives.ReadInt32LittleEndian(cli[Flags..]);
        BinaryPrimitives.WriteInt32LittleEndian(cli[Flags..], (int)((flags & ~CorFlags.ILLibrary) | CorFlags.ILOnly));
        cli.Slice(NativeHeader, 8).Clear();
        return result;
    }

    /// <summary>New metadata makes its section grow and moves the data after it, which must not contain method bodies or initial values.</summary>
    private static void CheckPositions(PEReader pe)
    {
        PEHeaders headers = pe.PEHeaders;
        SectionHeader section = headers.SectionHeaders[headers.GetContainingSectionIndex(headers.CorHeader!.MetadataDirectory.RelativeVirtualAddress)];
        int end = section.VirtualAddress + section.VirtualSize;
        MetadataReader reader = pe.GetMetadataReader();
        if (reader.MethodDefinitions.Any(m => reader.GetMethodDefinition(m).RelativeVirtualAddress >= end)
            || reader.FieldDefinitions.Any(f => reader.GetFieldDefinition(f).GetRelativeVirtualAddress() >= end))
        {
            throw new UnsupportedImageException("its IL is not where its metadata is");
        }
    }
}
