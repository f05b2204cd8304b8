using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Text;

namespace KernelTls.Tests;

/// <summary>
/// Finds the names by which types of a library look up members of other assemblies, and alters one of them in a copy of the library.
/// The copy then behaves as the library does where that member does not exist.
/// </summary>
internal static class PrivateNames
{
    private const byte LoadString = 0x72;
    private const byte StringTokens = 0x70;

    /// <summary>
    /// Returns the strings in the static constructors of the types, and the names in their accessors (<c>UnsafeAccessor</c>).
    /// </summary>
    /// <param name="library">The path of the library.</param>
    /// <param name="types">The names of the types, without their namespaces.</param>
    public static string[] Of(string library, params string[] types)
    {
        using PEReader image = new(File.OpenRead(library));
        MetadataReader metadata = image.GetMetadataReader();
        SortedSet<string> names = [];
        foreach (TypeDefinition type in metadata.TypeDefinitions.Select(metadata.GetTypeDefinition).Where(t => types.Contains(metadata.GetString(t.Name))))
        {
            foreach (MethodDefinition method in type.GetMethods().Select(metadata.GetMethodDefinition))
            {
                if (metadata.GetString(method.Name) == ".cctor")
                {
                    names.UnionWith(StringsIn(metadata, image.GetMethodBody(method.RelativeVirtualAddress).GetILBytes()!));
                }

                names.UnionWith(method.GetCustomAttributes().Select(a => NameIn(metadata, metadata.GetCustomAttribute(a))).OfType<string>());
            }
        }

        return [.. names];
    }

    /// <summary>
    /// Returns a copy of the library in which the name is another one, and the event source has another name as well: a process has one source of
    /// a name.
    /// </summary>
    public static byte[] Alter(string library, string name)
    {
        byte[] copy = File.ReadAllBytes(library);
        using PEReader image = new(new MemoryStream(copy));
        MetadataReader metadata = image.GetMetadataReader();
        List<int> places = [];
        for (UserStringHandle at = MetadataTokens.UserStringHandle(1); !at.IsNil; at = metadata.GetNextHandle(at))
        {
            if (metadata.GetUserString(at) == name)
            {
                int prefix = (name.Length * 2) + 1 < 0x80 ? 1 : 2;
                places.Add(metadata.GetHeapMetadataOffset(HeapIndex.UserString) + metadata.GetHeapOffset(at) + prefix);
            }
        }

        CustomAttribute[] attributes = [.. metadata.CustomAttributes.Select(metadata.GetCustomAttribute)];
        places.AddRange(attributes.Where(a => NameIn(metadata, a) == name).Select(a => PlaceIn(metadata, a, name)));
        Assert.NotEmpty(places);
        Span<byte> altered = copy.AsSpan(image.PEHeaders.MetadataStartOffset);
        foreach (int place in places.Distinct())
        {
            altered[place] = (byte)(name[0] == 'x' ? 'y' : 'x');
        }

        RenameEventSource(metadata, altered);
        return copy;
    }

    /// <summary>Gives the event source, which has the name of its type, the name of the type around it.</summary>
    private static void RenameEventSource(MetadataReader metadata, Span<byte> altered)
    {
        foreach (TypeDefinitionHandle handle in metadata.TypeDefinitions)
        {
            TypeDefinition type = metadata.GetTypeDefinition(handle);
            if (metadata.GetString(type.Name) == nameof(KernelTls))
            {
                // ECMA-335, II.22.37: the index of the name follows the flags. It has four bytes if two are too few for the heap.
                const int Flags = sizeof(uint);
                int row = (MetadataTokens.GetRowNumber(handle) - 1) * metadata.GetTableRowSize(TableIndex.TypeDef);
                int name = metadata.GetHeapOffset(metadata.GetTypeDefinition(type.GetDeclaringType()).Name);
                Span<byte> index = altered[(metadata.GetTableMetadataOffset(TableIndex.TypeDef) + row + Flags)..];
                if (metadata.GetHeapSize(HeapIndex.String) <= ushort.MaxValue)
                {
                    BinaryPrimitives.WriteUInt16LittleEndian(index, (ushort)name);
                }
                else
                {
                    BinaryPrimitives.WriteInt32LittleEndian(index, name);
                }
            }
        }
    }

    /// <summary>Returns where a text begins in the value of an attribute.</summary>
    private static int PlaceIn(MetadataReader metadata, CustomAttribute attribute, string text)
    {
        int within = metadata.GetBlobBytes(attribute.Value).AsSpan().LastIndexOf(Encoding.UTF8.GetBytes(text));
        int prefix = metadata.GetBlobReader(attribute.Value).Length < 0x80 ? 1 : 2;
        return metadata.GetHeapMetadataOffset(HeapIndex.Blob) + metadata.GetHeapOffset(attribute.Value) + prefix + within;
    }

    private static bool Is(MetadataReader metadata, CustomAttribute attribute, string type) =>
        attribute.Constructor.Kind == HandleKind.MemberReference
        && metadata.GetMemberReference((MemberReferenceHandle)attribute.Constructor).Parent is { Kind: HandleKind.TypeReference } parent
        && metadata.GetString(metadata.GetTypeReference((TypeReferenceHandle)parent).Name) == type;

    private static IEnumerable<string> StringsIn(MetadataReader metadata, byte[] code)
    {
        HashSet<int> strings = [];
        for (UserStringHandle at = MetadataTokens.UserStringHandle(1); !at.IsNil; at = metadata.GetNextHandle(at))
        {
            strings.Add(metadata.GetHeapOffset(at));
        }

        for (int i = 0; i + 4 < code.Length; i++)
        {
            int offset = code[i + 1] | (code[i + 2] << 8) | (code[i + 3] << 16);
            if (code[i] == LoadString && code[i + 4] == StringTokens && strings.Contains(offset))
            {
                yield return metadata.GetUserString(MetadataTokens.UserStringHandle(offset));
            }
        }
    }

    /// <summary>Returns the name in an attribute <c>UnsafeAccessor</c>, or null if it is another attribute or has no name.</summary>
    private static string? NameIn(MetadataReader metadata, CustomAttribute attribute)
    {
        if (!Is(metadata, attribute, "UnsafeAccessorAttribute"))
        {
            return null;
        }

        // ECMA-335, II.23.3: a prolog, the kind of the member, and the named arguments.
        BlobReader value = metadata.GetBlobReader(attribute.Value);
        value.ReadUInt16();
        value.ReadInt32();
        if (value.ReadUInt16() == 0)
        {
            return null;
        }

        value.ReadUInt16(); // a property, a string
        value.ReadSerializedString();
        return value.ReadSerializedString();
    }
}
