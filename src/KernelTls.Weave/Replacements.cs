using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;

namespace KernelTls.Weave;

/// <summary>
/// The replacements that the library declares for woven code, read from the assembly that the application will run with: public static methods that
/// replace constructors and members, and classes that replace base classes.
/// </summary>
/// <remarks>
/// In KernelTls.Weaving, a method of <c>WovenConstructors`1</c> replaces the constructor of what it returns with the same parameters; a
/// method of <c>WovenMembers</c> replaces the member of its first parameter's type with the same name and the other parameters; and
/// any other class replaces its nearest base class that is not the library's own.
/// </remarks>
internal sealed class Replacements
{
    public const string Library = "KernelTls";
    public const string Namespace = "KernelTls.Weaving";
    public const string Constructors = "WovenConstructors`1";
    public const string Members = "WovenMembers";

    private readonly Dictionary<string, TypeReplacement> _types = [];

    private Replacements(Version version) => Version = version;

    /// <summary>Gets the library's version.</summary>
    public Version Version { get; }

    /// <summary>Gets the full names of the types that have replaced members.</summary>
    public IEnumerable<string> Types => _types.Keys;

    /// <summary>Reads the replacements of a library.</summary>
    /// <param name="path">The path of KernelTls.dll.</param>
    /// <exception cref="BadImageFormatException">The file is no assembly, or declares no replacements.</exception>
    public static Replacements Read(string path)
    {
        using PEReader image = new(File.OpenRead(path));
        MetadataReader reader = image.GetMetadataReader();
        Replacements replacements = new(reader.GetAssemblyDefinition().Version);
        foreach (TypeDefinitionHandle handle in reader.TypeDefinitions)
        {
            TypeDefinition type = reader.GetTypeDefinition(handle);
            if (reader.StringComparer.Equals(type.Namespace, Namespace)
                && (type.Attributes & TypeAttributes.VisibilityMask) == TypeAttributes.Public)
            {
                replacements.Add(reader, type);
            }
        }

        return replacements._types.Count != 0
            ? replacements
            : throw new BadImageFormatException($"{path} declares nothing in the namespace {Namespace}.");
    }

    /// <summary>Returns the replacements for a type's members, or null.</summary>
    public TypeReplacement? Find(string type) => _types.GetValueOrDefault(type);

    private void Add(MetadataReader reader, TypeDefinition type)
    {
        string name = reader.GetString(type.Name);
        if (name is not (Constructors or Members))
        {
            Of(FirstForeignBase(reader, type)).BaseClass = name;
            return;
        }

        foreach (MethodDefinitionHandle handle in type.GetMethods())
        {
            MethodDefinition method = reader.GetMethodDefinition(handle);
            if ((method.Attributes & (MethodAttributes.MemberAccessMask | MethodAttributes.Static)) != (MethodAttributes.Public | MethodAttributes.Static))
            {
                continue;
            }

            MethodSignature<string> signature = method.DecodeSignature(SignatureText.Provider, null);
            if (name == Constructors)
            {
                Of(signature.ReturnType).Constructors[SignatureText.Of(signature.ParameterTypes)] = reader.GetString(method.Name);
            }
            else
            {
                Of(signature.ParameterTypes[0]).Members.Add(
                    reader.GetString(method.Name) + SignatureText.Of(signature.ParameterTypes.Skip(1)));
            }
        }
    }

    private TypeReplacement Of(string type) => _types.TryGetValue(type, out TypeReplacement? found) ? found : _types[type] = new();

    private static string FirstForeignBase(MetadataReader reader, TypeDefinition type)
    {
        while (type.BaseType.Kind == HandleKind.TypeDefinition)
        {
            type = reader.GetTypeDefinition((TypeDefinitionHandle)type.BaseType);
        }

        return SignatureText.Provider.GetTypeFromReference(reader, (TypeReferenceHandle)type.BaseType, 0);
    }
}
