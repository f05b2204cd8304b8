using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Weave.Images;

namespace KernelTls.Weave;

/// <summary>Derives the module id of a woven assembly from its contents.</summary>
internal static class ModuleIdentity
{
    /// <summary>Sets the module id.</summary>
    /// <param name="patch">The metadata to change.</param>
    /// <param name="reader">The original metadata.</param>
    /// <param name="image">The assembly.</param>
    /// <param name="result">The assembly with changed method bodies.</param>
    /// <param name="version">The version of the library.</param>
    public static void Set(MetadataPatch patch, MetadataReader reader, byte[] image, byte[] result, Version version)
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        hash.AppendData(image);
        hash.AppendData(result);
        hash.AppendData(Encoding.UTF8.GetBytes(version.ToString()));
        BlobContentId identity = BlobContentId.FromHash(hash.GetHashAndReset());
        patch.SetGuid(MetadataTokens.GetHeapOffset(reader.GetModuleDefinition().Mvid), identity.Guid);
    }
}
