using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;

namespace KernelTls.PackageTests;

/// <summary>Provides the bundle beside the built tool, and changed copies of it.</summary>
internal static class HookBundle
{
    public const string HookName = "KernelTls.StartupHook.dll";
    public const string HooksVariable = "DOTNET_STARTUP_HOOKS";

    /// <summary>Gets the assembly of the tool.</summary>
    public static string Tool => Repository.Built("KernelTls.Tool");

    public static string FullPath => Path.Combine(Path.GetDirectoryName(Tool)!, "bundle");

    /// <summary>Returns the variable that names the hook of a bundle.</summary>
    public static (string, string) Variable(string bundle) => (HooksVariable, Path.Combine(bundle, HookName));

    /// <summary>Copies the bundle to a new folder, and returns its path.</summary>
    public static string CopyTo(string folder)
    {
        foreach (string file in Directory.GetFiles(FullPath, "*", SearchOption.AllDirectories))
        {
            string copy = Path.Combine(folder, Path.GetRelativePath(FullPath, file));
            Directory.CreateDirectory(Path.GetDirectoryName(copy)!);
            File.Copy(file, copy);
        }

        return folder;
    }

    /// <summary>Changes the major version that an assembly has.</summary>
    public static void SetMajorVersion(string assembly, ushort major)
    {
        byte[] image = File.ReadAllBytes(assembly);
        int version;
        using (PEReader reader = new([.. image]))
        {
            // The row begins with the algorithm of hashes (4 bytes); the version follows.
            version = reader.PEHeaders.MetadataStartOffset + reader.GetMetadataReader().GetTableMetadataOffset(TableIndex.Assembly) + 4;
        }

        BinaryPrimitives.WriteUInt16LittleEndian(image.AsSpan(version), major);
        File.WriteAllBytes(assembly, image);
    }
}
