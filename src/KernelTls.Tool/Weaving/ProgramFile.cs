using System.Security.Cryptography;

namespace KernelTls.Tool.Weaving;

/// <summary>Recognizes the native programs of .NET by their contents.</summary>
internal static class ProgramFile
{
    // By the host's definition, with the end of the line. In front of it is the position of the assemblies, or zeros if there are none.
    private static readonly byte[] s_bundleMark = SHA256.HashData(".net core bundle\n"u8);

    /// <summary>Returns whether the file is a program for Linux.</summary>
    public static bool IsProgram(ReadOnlySpan<byte> file) => file.StartsWith("\u007fELF"u8);

    /// <summary>Returns whether the program contains the application's assemblies.</summary>
    public static bool IsSingleFile(ReadOnlySpan<byte> program)
    {
        int mark = program.IndexOf(s_bundleMark);
        return mark >= 8 && program.Slice(mark - 8, 8).ContainsAnyExcept((byte)0);
    }

    /// <summary>Returns whether NativeAOT has compiled the program.</summary>
    public static bool IsNativeAot(ReadOnlySpan<byte> program) => program.IndexOf("DotNetRuntimeDebugHeader"u8) >= 0;
}
