using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using KernelTls.Weave.Images;

namespace KernelTls.Weave;

/// <summary>
/// Rewrites one assembly: redirects its uses of SslStream, of HttpClient's handlers, and of ClientWebSocket to KernelTls. A changed instruction
/// keeps its length, and metadata only grows, so nothing else in the assembly changes and its symbols stay valid.
/// </summary>
internal sealed partial class AssemblyWeaver
{
    /// <summary>
    /// The name of a module reference that every woven assembly has. Nothing uses it, so no program loads it, and no compiler writes it.
    /// Disassemblers show it.
    /// </summary>
    private const string WovenMark = "KernelTls.Weave";

    private readonly byte[] _image;
    private readonly byte[] _result;
    private readonly PEReader _pe;
    private readonly MetadataReader _reader;
    private readonly Replacements _replacements;
    private readonly MetadataPatch _patch;
    private readonly WovenReferences _references;
    private readonly Dictionary<MemberReferenceHandle, MemberReplacement> _members = [];
    private readonly Dictionary<TypeDefinitionHandle, TypeReferenceHandle> _derived = [];
    private readonly List<string> _places = [];
    private readonly List<string> _problems = [];

    private AssemblyWeaver(byte[] image, PEReader pe, MetadataReader reader, Replacements replacements)
    {
        _image = image;
        _result = [.. image];
        _pe = pe;
        _reader = reader;
        _replacements = replacements;
        _patch = new MetadataPatch(pe.GetMetadata().GetContent().ToArray());
        _references = new WovenReferences(reader, _patch, replacements.Version);
    }

    /// <summary>Weaves an assembly.</summary>
    /// <param name="image">The bytes of the assembly.</param>
    /// <param name="replacements">The replacements that the library declares.</param>
    /// <exception cref="UnsupportedImageException">The assembly cannot be woven; the message says why.</exception>
    public static WeaveResult Weave(byte[] image, Replacements replacements)
    {
        try
        {
            return WeaveImage(image, replacements);
        }
        catch (Exception e) when (e is not UnsupportedImageException)
        {
            // In a damaged assembly the readers may throw any exception anywhere.
            throw new UnsupportedImageException($"it is damaged, or of a form that is not known here ({e.Message})");
        }
    }

    /// <summary>Returns whether an assembly has been woven.</summary>
    public static bool IsWoven(string path)
    {
        using PEReader pe = new(File.OpenRead(path));
        return IsWoven(pe);
    }

    /// <inheritdoc cref="IsWoven(string)"/>
    public static bool IsWoven(PEReader image) => HasMetadata(image) && IsWoven(image.GetMetadataReader());

    /// <summary>Returns whether an assembly has a place to weave.</summary>
    public static bool HasPlaces(string path, Replacements replacements) => HasPlaces(File.OpenRead(path), replacements);

    /// <inheritdoc cref="HasPlaces(string, Replacements)"/>
    public static bool HasPlaces(Stream image, Replacements replacements)
    {
        using PEReader pe = new(image);
        try
        {
            return HasMetadata(pe) && HasPlaces(pe.GetMetadataReader(), replacements);
        }
        catch (Exception e) when (e is BadImageFormatException or ArgumentException or InvalidCastException or InsufficientExecutionStackException)
        {
            return false;
        }
    }

    private static WeaveResult WeaveImage(byte[] image, Replacements replacements)
    {
        using PEReader pe = new(new MemoryStream(image));
        if (!HasMetadata(pe))
        {
            throw new UnsupportedImageException("it is not a managed assembly");
        }

        MetadataReader reader = pe.GetMetadataReader();
        if (IsWoven(reader))
        {
            return new WeaveResult(null, [], []) { WasWoven = true };
        }

        if (!HasPlaces(reader, replacements))
        {
            return new WeaveResult(null, [], []);
        }

        PortableExecutable.Check(pe);
        return new AssemblyWeaver(image, pe, reader, replacements).Weave();
    }

    private static bool IsWoven(MetadataReader reader) => Enumerable.Range(1, reader.GetTableRowCount(TableIndex.ModuleRef)).Any(
        row => reader.StringComparer.Equals(reader.GetModuleReference(MetadataTokens.ModuleReferenceHandle(row)).Name, WovenMark));

    private static bool HasMetadata(PEReader pe)
    {
        try
        {
            return pe.HasMetadata;
        }
        catch (BadImageFormatException)
        {
            return false;
        }
    }

    /// <summary>Returns whether an assembly has a place to weave. The type references alone rule most assemblies out.</summary>
    private static bool HasPlaces(MetadataReader reader, Replacements replacements) =>
        reader.TypeReferences.Any(h => IsReplaced(reader, h, replacements, out _))
        && (reader.MemberReferences.Any(h => MemberOf(reader, h, replacements) is { Constructor: not null } or { IsReplacedByStatic: true })
            || reader.TypeDefinitions.Any(h => reader.GetTypeDefinition(h).BaseType is { IsNil: false, Kind: HandleKind.TypeReference } b
                && IsReplaced(reader, (TypeReferenceHandle)b, replacements, out TypeReplacement? type) && type!.BaseClass is not null));

    /// <summary>Returns whether the framework defines the type, whatever facade the reference names.</summary>
    private static bool IsReplaced(
        MetadataReader reader, TypeReferenceHandle handle, Replacements replacements, out TypeReplacement? replacement)
    {
        replacement = null;
        TypeReference type = reader.GetTypeReference(handle);
        if (type.ResolutionScope.Kind != HandleKind.AssemblyReference)
        {
            return false;
        }

        string scope = reader.GetString(reader.GetAssemblyReference((AssemblyReferenceHandle)type.ResolutionScope).Name);
        if (scope is not ("System" or "netstandard") && !scope.StartsWith("System.", StringComparison.Ordinal))
        {
            return false;
        }

        replacement = replacements.Find(SignatureText.NameOf(reader, type.Namespace, type.Name));
        return replacement is not null;
    }

    private WeaveResult Weave()
    {
        ReplaceBaseClasses();
        FindMembers();
        if (_members.Count != 0 || _derived.Count != 0)
        {
            foreach (MethodDefinitionHandle handle in _reader.MethodDefinitions)
            {
                WeaveMethod(_reader.GetMethodDefinition(handle));
            }
        }

        if (!_references.Any)
        {
            return new WeaveResult(null, [], _problems);
        }

        _patch.AddRow(TableIndex.ModuleRef, _patch.AddString(WovenMark));
        ModuleIdentity.Set(_patch, _reader, _image, _result, _replacements.Version);
        byte[] woven = PortableExecutable.WithMetadata(_result, _pe.PEHeaders, _patch.ToArray());
        return new WeaveResult(woven, _places, _problems);
    }

    private void ReplaceBaseClasses()
    {
        const int Extends = 3;
        foreach (TypeDefinitionHandle handle in _reader.TypeDefinitions)
        {
            if (BaseOf(handle) is { } type && IsReplaced(_reader, type, _replacements, out TypeReplacement? replacement)
                && replacement!.BaseClass is { } baseClass)
            {
                _derived[handle] = type;
                TypeDefinition definition = _reader.GetTypeDefinition(handle);
                if (definition.BaseType == (EntityHandle)type)
                {
                    _patch.SetCell(
                        TableIndex.TypeDef,
                        MetadataTokens.GetRowNumber(handle),
                        Extends,
                        (uint)CodedIndex.TypeDefOrRefOrSpec(_references.Instantiation(baseClass)));
                    _places.Add($"class {SignatureText.Provider.GetTypeFromDefinition(_reader, handle, 0)} : {NameOf(type)}");
                }
            }
        }
    }

    /// <summary>Returns the first base class that another assembly defines.</summary>
    /// <exception cref="BadImageFormatException">A class is its own base class.</exception>
    private TypeReferenceHandle? BaseOf(TypeDefinitionHandle handle)
    {
        EntityHandle type = handle;
        for (int steps = 0; !type.IsNil && type.Kind == HandleKind.TypeDefinition; steps++)
        {
            if (steps > _reader.TypeDefinitions.Count)
            {
                throw new BadImageFormatException("The base classes form a circle.");
            }

            type = _reader.GetTypeDefinition((TypeDefinitionHandle)type).BaseType;
            if (type.Kind == HandleKind.TypeSpecification)
            {
                type = GenericTypeOf((TypeSpecificationHandle)type);
            }
        }

        return type.IsNil || type.Kind != HandleKind.TypeReference ? null : (TypeReferenceHandle)type;
    }

    private EntityHandle GenericTypeOf(TypeSpecificationHandle handle)
    {
        BlobReader signature = _reader.GetBlobReader(_reader.GetTypeSpecification(handle).Signature);
        return signature.ReadCompressedInteger() == (int)SignatureTypeCode.GenericTypeInstance
            && signature.ReadCompressedInteger() == (int)SignatureTypeKind.Class
                ? signature.ReadTypeHandle()
                : default;
    }

    private string NameOf(TypeReferenceHandle type) => _reader.GetString(_reader.GetTypeReference(type).Name);
}
