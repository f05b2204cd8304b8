using System.Buffers.Binary;

namespace KernelTls.Tool.Running;

/// <summary>Describes an executable: .NET's host of an application, a single file, or one that is compiled ahead of time.</summary>
/// <param name="IsHost">Whether it is .NET's host, which starts the assembly beside it.</param>
/// <param name="IsSingleFile">Whether it contains the application's assemblies.</param>
/// <param name="IsAheadOfTime">Whether it is NativeAOT's.</param>
/// <param name="Configuration">The runtimeconfig.json of a single file, or null.</param>
internal sealed record NativeProgram(bool IsHost, bool IsSingleFile, bool IsAheadOfTime, byte[]? Configuration)
{
    private static readonly NativeProgram s_unknown = new(false, false, false, null);

    /// <summary>
    /// Gets the mark of .NET's hosts: the SHA-256 of ".net core bundle" and a line feed. In front of it is the position of the files in a single
    /// file.
    /// </summary>
    private static ReadOnlySpan<byte> HostMark =>
    [
        0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
        0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
    ];

    /// <summary>Returns whether a file, of which these are the first bytes or more, is a program for Linux.</summary>
    public static bool IsProgram(ReadOnlySpan<byte> file) => file.StartsWith("\u007fELF"u8);

    /// <summary>Reads an executable. One that is not of .NET has none of the properties.</summary>
    public static NativeProgram Read(string path)
    {
        byte[] file = File.ReadAllBytes(path);
        if (!IsProgram(file))
        {
            return s_unknown;
        }

        int mark = file.AsSpan().IndexOf(HostMark);
        bool isHost = mark >= sizeof(long);
        if (isHost && BinaryPrimitives.ReadInt64LittleEndian(file.AsSpan(mark - sizeof(long))) is var files and not 0)
        {
            return s_unknown with { IsSingleFile = true, Configuration = ReadConfiguration(file, files) };
        }

        return s_unknown with { IsHost = isHost, IsAheadOfTime = HasAheadOfTimeMark(file) };
    }

    /// <summary>Looks for the section with the compiled methods, and for the symbol that debuggers look for.</summary>
    private static bool HasAheadOfTimeMark(ReadOnlySpan<byte> file) =>
        file.IndexOf("\0__managedcode\0"u8) >= 0 || file.IndexOf("DotNetRuntimeDebugHeader"u8) >= 0;

    /// <summary>Returns the runtimeconfig.json that the header of a single file (version 2 or later) names, or null.</summary>
    private static byte[]? ReadConfiguration(byte[] file, long header)
    {
        try
        {
            using BinaryReader reader = new(new MemoryStream(file) { Position = header });
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
