using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using KernelTls.Weave.Images;

namespace KernelTls.Weave;

/// <summary>Adds references to the library to an assembly, each once, at its first use.</summary>
internal sealed class WovenReferences(MetadataReader reader, MetadataPatch patch, Version version)
{
    private readonly Dictionary<string, TypeReferenceHandle> _types = [];
    private readonly Dictionary<string, TypeSpecificationHandle> _instantiations = [];
    private readonly Dictionary<(EntityHandle Parent, MemberReferenceHandle Replaced), int> _members = [];
    private AssemblyReferenceHandle _library;
    private TypeDefinitionHandle _marker;

    /// <summary>Gets a value that indicates whether there are any.</summary>
    public bool Any => !_library.IsNil;

    /// <summary>Returns the token of the method that replaces a constructor.</summary>
    public int Constructor(MemberReferenceHandle constructor, string method) => Member(
        Instantiation(Replacements.Constructors),
        constructor,
        () => patch.AddString(method),
        r => SignatureBytes.Returning(reader.GetBlobReader(r.Signature), r.Parent));

    /// <summary>Returns the token of the static method that replaces an instance method.</summary>
    public int StaticMember(MemberReferenceHandle member) => Member(
        Type(Replacements.Members),
        member,
        () => NameOf(member),
        r => SignatureBytes.WithReceiver(reader.GetBlobReader(r.Signature), r.Parent));

    /// <summary>Returns the token of the same member of another base class.</summary>
    public int BaseMember(MemberReferenceHandle member, string baseClass) => Member(
        Instantiation(baseClass), member, () => NameOf(member), r => reader.GetBlobBytes(r.Signature));

    /// <summary>Returns a generic class of the library with a class of this assembly as its type argument.</summary>
    public TypeSpecificationHandle Instantiation(string genericType)
    {
        if (!_instantiations.TryGetValue(genericType, out TypeSpecificationHandle handle))
        {
            uint signature = patch.AddBlob(SignatureBytes.Instantiation(Type(genericType), Marker));
            handle = MetadataTokens.TypeSpecificationHandle(patch.AddRow(TableIndex.TypeSpec, signature));
            _instantiations[genericType] = handle;
        }

        return handle;
    }

    private int Member(
        EntityHandle parent, MemberReferenceHandle replaced, Func<uint> name, Func<MemberReference, byte[]> signature)
    {
        if (!_members.TryGetValue((parent, replaced), out int token))
        {
            int row = patch.AddRow(
                TableIndex.MemberRef,
                (uint)CodedIndex.MemberRefParent(parent),
                name(),
                patch.AddBlob(signature(reader.GetMemberReference(replaced))));
            token = MetadataTokens.GetToken(MetadataTokens.MemberReferenceHandle(row));
            _members[(parent, replaced)] = token;
        }

        return token;
    }

    private uint NameOf(MemberReferenceHandle member) => (uint)MetadataTokens.GetHeapOffset(reader.GetMemberReference(member).Name);

    private TypeReferenceHandle Type(string name)
    {
        if (!_types.TryGetValue(name, out TypeReferenceHandle handle))
        {
            int row = patch.AddRow(
                TableIndex.TypeRef,
                (uint)CodedIndex.ResolutionScope(LibraryReference),
                patch.AddString(name),
                patch.AddString(Replacements.Namespace));
            _types[name] = handle = MetadataTokens.TypeReferenceHandle(row);
        }

        return handle;
    }

    /// <summary>The assembly's own reference, if it has one.</summary>
    private AssemblyReferenceHandle LibraryReference
    {
        get
        {
            if (_library.IsNil)
            {
                _library = reader.AssemblyReferences.FirstOrDefault(
                    h => reader.StringComparer.Equals(reader.GetAssemblyReference(h).Name, Replacements.Library));
            }

            if (_library.IsNil)
            {
                _library = MetadataTokens.AssemblyReferenceHandle(patch.AddRow(
                    TableIndex.AssemblyRef,
                    (uint)version.Major, (uint)version.Minor, (uint)version.Build, (uint)version.Revision,
                    0, 0, patch.AddString(Replacements.Library), 0, 0));
            }

            return _library;
        }
    }

    /// <summary>Any non-generic class of the assembly: it only identifies the assembly.</summary>
    private TypeDefinitionHandle Marker
    {
        get
        {
            if (_marker.IsNil)
            {
                _marker = reader.TypeDefinitions.Skip(1).FirstOrDefault(IsPlainClass);
            }

            return !_marker.IsNil ? _marker : throw new UnsupportedImageException("it has no class that is not generic");
        }
    }

    private bool IsPlainClass(TypeDefinitionHandle handle)
    {
        TypeDefinition type = reader.GetTypeDefinition(handle);
        if (type.GetGenericParameters().Count != 0 || type.BaseType.IsNil)
        {
            return false;
        }

        return type.BaseType.Kind != HandleKind.TypeReference
            || SignatureText.Provider.GetTypeFromReference(reader, (TypeReferenceHandle)type.BaseType, 0)
                is not ("System.ValueType" or "System.Enum");
    }
}
