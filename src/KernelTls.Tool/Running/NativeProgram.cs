using System.Buffers.Binary;

namespace KernelTls.Tool.Running;

/// <summary>Describes an executable: .NET's host of an application, a single file, or one that is compiled ahead of time.</summary>
/// <param name="IsHost">Whether it is .NET's host, which starts the assembly beside it.</param>
/// <param name="IsAheadOfTime">Whether it is NativeAOT's.</param>
/// <param name="Configuration">The runtimeconfig.json of a single file, or null.</param>
internal sealed record NativeProgram(bool IsHost, bool IsAheadOfTime, byte[]? Configuration)
{
    private static readonly NativeProgram s_unknown = new(false, false, null);

    /// <summary>Gets the mark of .NET's hosts: the SHA-256 of ".net core bundle". In front of it is the position of the files in a single file.</summary>
    private static ReadOnlySpan<byte> HostMark =>
    [
        0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
        0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
    ];

    /// <summary>Reads an executable. One that is not of .NET has none of the properties.</summary>
    public static NativeProgram Read(string path)
    {
        byte[] file = File.ReadAllBytes(path);
        if (!file.AsSpan().StartsWith("\x7f"u8) || !file.AsSpan(1).StartsWith("ELF"u8))
        {
            return s_unknown;
        }

        int mark = file.AsSpan().IndexOf(HostMark);
        if (mark < sizeof(long))
        {
            // The name of the section with the compiled methods.
            return file.AsSpan().IndexOf("\0__managedcode\0"u8) >= 0 ? s_unknown with { IsAheadOfTime = true } : s_unknown;
        }

        long files = BinaryPrimitives.ReadInt64LittleEndian(file.AsSpan(mark - sizeof(long)));
        return files == 0
            ? s_unknown with { IsHost = true }
            : s_unknown with { Configuration = ReadConfiguration(file, files) };
    }

    /// <summary>Returns the runtimeconfig.json that the header of a single file (version 2 or later) names, or null.</summary>
    private static byte[]? ReadConfiguration(byte[] file, long header)
    {
        using BinaryReader reader = new(new MemoryStream(file) { Position = header });
        try
        {
            _ = reader.ReadUInt32(); // the version
            _ = reader.ReadUInt32();
            _ = reader.ReadInt32(); // the number of files
            _ = reader.ReadString(); // the id
            _ = reader.ReadInt64(); // deps.json
            _ = reader.ReadInt64();
            long position = reader.ReadInt64();
            long length = reader.ReadInt64();
            return length == 0 ? null : file[(int)position..(int)(position + length)];
        }
        catch (Exception e) when (e is EndOfStreamException or ArgumentException or OverflowException)
        {
            return null;
        }
    }
}
