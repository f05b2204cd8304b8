using System.Buffers.Binary;
using System.Reflection.PortableExecutable;

namespace KernelTls.Weave.Images;

/// <summary>
/// Gives an assembly other metadata, at the end of the section that has the old one. What follows that section moves by whole pages;
/// within it nothing moves, so that method bodies, resources and debug data stay where they are.
/// </summary>
internal static class PortableExecutable
{
    private const int SectionHeaderSize = 40;
    private const int ImportTable = 1, ResourceTable = 2, CertificateTable = 4, RelocationTable = 5, Debug = 6, ImportAddressTable = 12, CliHeader = 14;

    /// <summary>The data directories of an assembly that is IL only. Others hold addresses that are unknown here.</summary>
    private static readonly int[] s_known = [ImportTable, ResourceTable, CertificateTable, RelocationTable, Debug, ImportAddressTable, CliHeader];

    /// <summary>Throws if the image is not an assembly that can be rewritten.</summary>
    /// <exception cref="UnsupportedImageException">It says why.</exception>
    public static void Check(PEReader image)
    {
        PEHeaders headers = image.PEHeaders;
        if (headers.CorHeader is not { } cli || !image.HasMetadata)
        {
            throw new UnsupportedImageException("it is not a managed assembly");
        }

        if (cli.ManagedNativeHeaderDirectory.Size != 0)
        {
            throw new UnsupportedImageException("it was compiled to native code (ReadyToRun), which weaving would contradict");
        }

        if ((cli.Flags & CorFlags.ILOnly) == 0)
        {
            throw new UnsupportedImageException("it mixes native and managed code");
        }
    }

    /// <summary>Returns the image with other metadata.</summary>
    /// <param name="image">The image, with all other changes.</param>
    /// <param name="headers">The headers of the image.</param>
    /// <param name="metadata">The new metadata.</param>
    /// <exception cref="UnsupportedImageException">The image has parts that no assembly of IL alone has.</exception>
    public static byte[] WithMetadata(ReadOnlySpan<byte> image, PEHeaders headers, byte[] metadata)
    {
        PEHeader optional = headers.PEHeader!;
        int directories = headers.PEHeaderStartOffset + (optional.Magic == PEMagic.PE32 ? 96 : 112);
        int directoryCount = optional.NumberOfRvaAndSizes;
        for (int i = 0; i < directoryCount; i++)
        {
            if (!s_known.Contains(i) && Read(image, directories + (8 * i)) != 0)
            {
                throw new UnsupportedImageException($"its data directory {i} is not one of an assembly of IL alone");
            }
        }

        int index = headers.GetContainingSectionIndex(headers.CorHeader!.MetadataDirectory.RelativeVirtualAddress);
        SectionHeader section = headers.SectionHeaders[index];
        int start = Align(section.VirtualSize, 4);
        int virtualSize = start + metadata.Length;
        int rawSize = Align(Math.Max(virtualSize, section.SizeOfRawData), optional.FileAlignment);
        int oldSpan = Align(section.VirtualSize, optional.SectionAlignment);
        Shift shift = new(
            EndAddress: section.VirtualAddress + oldSpan,
            Virtual: Align(virtualSize, optional.SectionAlignment) - oldSpan,
            EndPosition: section.PointerToRawData + section.SizeOfRawData,
            Raw: rawSize - section.SizeOfRawData);

        byte[] result = Grow(image, section, rawSize, EndOfSections(headers) + shift.Raw);
        metadata.CopyTo(result.AsSpan(section.PointerToRawData + start));
        result.AsSpan(headers.MetadataStartOffset, headers.MetadataSize).Clear();

        MoveDirectories(result, directories, directoryCount, headers, shift);
        MoveSections(result, headers, index, virtualSize, rawSize, shift);
        WriteOptionalHeader(result, headers, section, shift);
        Write(result, shift.Position(headers.CorHeaderStartOffset) + 8, section.VirtualAddress + start);
        Write(result, shift.Position(headers.CorHeaderStartOffset) + 12, metadata.Length);
        ClearSignature(result, headers, shift);
        return result;
    }

    /// <summary>Data after the last section (a signature of the file) is dropped.</summary>
    private static int EndOfSections(PEHeaders headers) => headers.SectionHeaders.Max(s => s.PointerToRawData + s.SizeOfRawData);

    private static byte[] Grow(ReadOnlySpan<byte> image, SectionHeader section, int rawSize, int length)
    {
        byte[] result = new byte[length];
        int end = section.PointerToRawData + section.SizeOfRawData;
        int newEnd = section.PointerToRawData + rawSize;
        image[..end].CopyTo(result);

        // The padding up to the alignment is not part of the section.
        int content = Math.Min(section.VirtualSize, section.SizeOfRawData);
        result.AsSpan(section.PointerToRawData + content, rawSize - content).Clear();
        image[end..Math.Min(image.Length, end + length - newEnd)].CopyTo(result.AsSpan(newEnd));
        return result;
    }

    private static void MoveSections(byte[] result, PEHeaders headers, int grown, int virtualSize, int rawSize, Shift shift)
    {
        int header = headers.PEHeaderStartOffset + headers.CoffHeader.SizeOfOptionalHeader;
        for (int i = 0; i < headers.SectionHeaders.Length; i++, header += SectionHeaderSize)
        {
            if (i == grown)
            {
                Write(result, header + 8, virtualSize);
                Write(result, header + 16, rawSize);
            }
            else
            {
                Write(result, header + 12, shift.Address(headers.SectionHeaders[i].VirtualAddress));
                Write(result, header + 20, shift.Position(headers.SectionHeaders[i].PointerToRawData));
            }
        }
    }

    private static void MoveDirectories(byte[] result, int directories, int count, PEHeaders headers, Shift shift)
    {
        for (int i = 0; i < count; i++)
        {
            int entry = directories + (8 * i);
            int address = Read(result, entry);
            if (i == CertificateTable)
            {
                Write(result, entry, 0);
                Write(result, entry + 4, 0);
            }
            else if (address != 0)
            {
                int position = shift.Position(PositionOf(headers, address));
                Write(result, entry, shift.Address(address));
                switch (i)
                {
                    case ResourceTable:
                        MoveResources(result, position, 0, shift, depth: 0);
                        break;
                    case RelocationTable:
                        MoveRelocations(result, position, Read(result, entry + 4), shift);
                        break;
                    case Debug:
                        MoveDebugData(result, position, Read(result, entry + 4), shift);
                        break;
                }
            }
        }
    }

    /// <summary>The resources of Windows, among them the file's version, are a tree whose leaves have addresses.</summary>
    private static void MoveResources(byte[] result, int root, int directory, Shift shift, int depth)
    {
        const int MaximumDepth = 3, Subdirectory = int.MinValue;
        int entries = BinaryPrimitives.ReadUInt16LittleEndian(result.AsSpan(root + directory + 12))
            + BinaryPrimitives.ReadUInt16LittleEndian(result.AsSpan(root + directory + 14));
        for (int i = 0; i < entries; i++)
        {
            int target = Read(result, root + directory + 16 + (8 * i) + 4);
            if ((target & Subdirectory) == 0)
            {
                Write(result, root + target, shift.Address(Read(result, root + target)));
            }
            else if (depth < MaximumDepth)
            {
                MoveResources(result, root, target & ~Subdirectory, shift, depth + 1);
            }
            else
            {
                throw new UnsupportedImageException("its Windows resources are nested deeper than Windows defines");
            }
        }
    }

    private static void MoveRelocations(byte[] result, int position, int size, Shift shift)
    {
        for (int end = position + size; position + 8 <= end;)
        {
            Write(result, position, shift.Address(Read(result, position)));
            int length = Read(result, position + 4);
            if (length < 8)
            {
                break;
            }

            position += length;
        }
    }

    private static void MoveDebugData(byte[] result, int position, int size, Shift shift)
    {
        const int EntrySize = 28;
        for (int end = position + size; position + EntrySize <= end; position += EntrySize)
        {
            Write(result, position + 20, shift.Address(Read(result, position + 20)));
            Write(result, position + 24, shift.Position(Read(result, position + 24)));
        }
    }

    private static void WriteOptionalHeader(byte[] result, PEHeaders headers, SectionHeader section, Shift shift)
    {
        const int SizeOfCode = 4, SizeOfInitializedData = 8, SizeOfImage = 56, CheckSum = 64;
        int optional = headers.PEHeaderStartOffset;
        int size = optional + ((section.SectionCharacteristics & SectionCharacteristics.ContainsCode) != 0 ? SizeOfCode : SizeOfInitializedData);
        Write(result, size, Read(result, size) + shift.Raw);
        Write(result, optional + SizeOfImage, Read(result, optional + SizeOfImage) + shift.Virtual);
        Write(result, optional + CheckSum, 0);
    }

    /// <summary>The assembly keeps its identity; the signature is that of an assembly that is signed by its public key alone.</summary>
    private static void ClearSignature(byte[] result, PEHeaders headers, Shift shift)
    {
        DirectoryEntry signature = headers.CorHeader!.StrongNameSignatureDirectory;
        if (signature.Size != 0)
        {
            result.AsSpan(shift.Position(PositionOf(headers, signature.RelativeVirtualAddress)), signature.Size).Clear();
        }
    }

    private static int PositionOf(PEHeaders headers, int address)
    {
        int index = headers.GetContainingSectionIndex(address);
        return index < 0
            ? throw new UnsupportedImageException("its headers have an address outside of its sections")
            : headers.SectionHeaders[index].PointerToRawData + address - headers.SectionHeaders[index].VirtualAddress;
    }

    private static int Align(int value, int alignment) => checked(value + alignment - 1) / alignment * alignment;

    private static int Read(ReadOnlySpan<byte> bytes, int position) => BinaryPrimitives.ReadInt32LittleEndian(bytes[position..]);

    private static void Write(byte[] bytes, int position, int value) =>
        BinaryPrimitives.WriteInt32LittleEndian(bytes.AsSpan(position), value);

    /// <summary>Contains the distances by which the contents after the grown section move, in memory and in the file.</summary>
    /// <param name="EndAddress">The address of the first byte that moves.</param>
    /// <param name="Virtual">How far it moves.</param>
    /// <param name="EndPosition">Its position in the file.</param>
    /// <param name="Raw">How far it moves there.</param>
    private readonly record struct Shift(int EndAddress, int Virtual, int EndPosition, int Raw)
    {
        public int Address(int address) => address >= EndAddress ? address + Virtual : address;

        public int Position(int position) => position >= EndPosition ? position + Raw : position;
    }
}
