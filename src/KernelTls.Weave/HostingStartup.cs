using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Text;
using KernelTls.Weave.Images;

namespace KernelTls.Weave;

/// <summary>
/// Adds the attribute to a program by which ASP.NET Core finds the start-up class of KernelTls.AspNetCore. In a build with that package
/// the compiler writes it.
/// </summary>
internal static class HostingStartup
{
    /// <summary>The assembly with the start-up class.</summary>
    public const string Library = "KernelTls.AspNetCore";

    private const string Class = $"{Library}.KernelTlsHostingStartup";
    private const string Attribute = "HostingStartupAttribute", AttributeNamespace = "Microsoft.AspNetCore.Hosting";
    private const string AttributeAssembly = "Microsoft.AspNetCore.Hosting.Abstractions";

    // ASP.NET Core's.
    private static readonly byte[] s_publicKeyToken = [0xad, 0xb9, 0x79, 0x38, 0x29, 0xdd, 0xae, 0x60];

    /// <summary>Returns whether a program has the attribute.</summary>
    public static bool IsIn(byte[] image)
    {
        using PEReader pe = new(new MemoryStream(image));
        return pe.HasMetadata && IsIn(pe.GetMetadataReader());
    }

    /// <summary>Returns the program with the attribute.</summary>
    /// <param name="image">The program's assembly, woven or not.</param>
    /// <param name="version">The version of the library.</param>
    /// <exception cref="UnsupportedImageException">The attribute cannot be added; the message says why.</exception>
    public static byte[] Add(byte[] image, Version version)
    {
        using PEReader pe = new(new MemoryStream(image));
        PortableExecutable.Check(pe);
        MetadataReader reader = pe.GetMetadataReader();
        MetadataPatch patch = new(pe.GetMetadata().GetContent().ToArray());
        int attribute = patch.AddRow(
            TableIndex.TypeRef,
            (uint)CodedIndex.ResolutionScope(AttributeReference(reader, patch)),
            patch.AddString(Attribute),
            patch.AddString(AttributeNamespace));
        int constructor = patch.AddRow(
            TableIndex.MemberRef,
            (uint)CodedIndex.MemberRefParent(MetadataTokens.TypeReferenceHandle(attribute)),
            patch.AddString(".ctor"),
            patch.AddBlob(Signature(TypeReference(reader, patch))));
        patch.AddAttribute(
            (uint)CodedIndex.HasCustomAttribute(EntityHandle.AssemblyDefinition),
            (uint)CodedIndex.CustomAttributeType(MetadataTokens.MemberReferenceHandle(constructor)),
            patch.AddBlob(Value(version)));
        ModuleIdentity.Set(patch, reader, image, image, version);
        return PortableExecutable.WithMetadata(image, pe.PEHeaders, patch.ToArray());
    }

    private static bool IsIn(MetadataReader reader)
    {
        if (!reader.IsAssembly)
        {
            return false;
        }

        foreach (CustomAttributeHandle handle in reader.GetAssemblyDefinition().GetCustomAttributes())
        {
            CustomAttribute attribute = reader.GetCustomAttribute(handle);
            if (attribute.Constructor.Kind == HandleKind.MemberReference
                && reader.GetMemberReference((MemberReferenceHandle)attribute.Constructor).Parent is { Kind: HandleKind.TypeReference } parent
                && reader.StringComparer.Equals(reader.GetTypeReference((TypeReferenceHandle)parent).Name, Attribute)
                && Encoding.UTF8.GetString(reader.GetBlobBytes(attribute.Value)).Contains(Class, StringComparison.Ordinal))
            {
                return true;
            }
        }

        return false;
    }

    private static AssemblyReferenceHandle AttributeReference(MetadataReader reader, MetadataPatch patch)
    {
        AssemblyReferenceHandle known = Find(reader, AttributeAssembly);
        return !known.IsNil ? known : MetadataTokens.AssemblyReferenceHandle(patch.AddRow(
            TableIndex.AssemblyRef, 1, 0, 0, 0, 0, patch.AddBlob(s_publicKeyToken), patch.AddString(AttributeAssembly), 0, 0));
    }

    /// <summary>Returns the program's reference to System.Type.</summary>
    private static TypeReferenceHandle TypeReference(MetadataReader reader, MetadataPatch patch)
    {
        TypeReferenceHandle known = FindType(reader, nameof(Type));
        if (!known.IsNil)
        {
            return known;
        }

        TypeReferenceHandle neighbor = FindType(reader, nameof(Object));
        if (neighbor.IsNil)
        {
            throw new UnsupportedImageException("it does not refer to System.Object");
        }

        return MetadataTokens.TypeReferenceHandle(patch.AddRow(
            TableIndex.TypeRef,
            (uint)CodedIndex.ResolutionScope(reader.GetTypeReference(neighbor).ResolutionScope),
            patch.AddString(nameof(Type)),
            (uint)MetadataTokens.GetHeapOffset(reader.GetTypeReference(neighbor).Namespace)));
    }

    private static AssemblyReferenceHandle Find(MetadataReader reader, string assembly) => reader.AssemblyReferences.FirstOrDefault(
        h => reader.StringComparer.Equals(reader.GetAssemblyReference(h).Name, assembly));

    private static TypeReferenceHandle FindType(MetadataReader reader, string name) => reader.TypeReferences.FirstOrDefault(
        h => reader.GetTypeReference(h) is { ResolutionScope.Kind: HandleKind.AssemblyReference } type
            && reader.StringComparer.Equals(type.Name, name) && reader.StringComparer.Equals(type.Namespace, nameof(System)));

    /// <summary>Returns the signature of a constructor with one parameter, of this type.</summary>
    private static byte[] Signature(TypeReferenceHandle type)
    {
        BlobBuilder signature = new();
        signature.WriteByte((byte)SignatureAttributes.Instance);
        signature.WriteCompressedInteger(1);
        signature.WriteByte((byte)SignatureTypeCode.Void);
        signature.WriteByte((byte)SignatureTypeKind.Class);
        signature.WriteCompressedInteger(CodedIndex.TypeDefOrRefOrSpec(type));
        return signature.ToArray();
    }

    /// <summary>Returns the attribute's arguments (ECMA-335, II.23.3).</summary>
    private static byte[] Value(Version version)
    {
        BlobBuilder value = new();
        value.WriteUInt16(1);
        value.WriteSerializedString($"{Class}, {Library}, Version={version}, Culture=neutral, PublicKeyToken=null");
        value.WriteUInt16(0);
        return value.ToArray();
    }
}
