using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;

namespace KernelTls.Tool.Weaving;

/// <summary>Finds out whether the .NET beside an application was trimmed to what the application uses, without what the library needs.</summary>
internal sealed class TrimmedFramework(string folder)
{
    private readonly Dictionary<string, Dictionary<string, HashSet<string>>?> _assemblies = [];
    private readonly Dictionary<(string Assembly, string Type), string> _forwards = [];

    /// <summary>Returns the first type or member that a library refers to and the folder lacks, or null.</summary>
    public string? FindMissing(string library)
    {
        using PEReader pe = new(File.OpenRead(library));
        MetadataReader reader = pe.GetMetadataReader();
        foreach (TypeReferenceHandle handle in reader.TypeReferences)
        {
            if (Find(reader, handle) is (string type, null))
            {
                return type;
            }
        }

        foreach (MemberReferenceHandle handle in reader.MemberReferences)
        {
            MemberReference member = reader.GetMemberReference(handle);
            if (member.Parent.Kind == HandleKind.TypeReference
                && Find(reader, (TypeReferenceHandle)member.Parent) is (string type, { } members)
                && !members.Contains(reader.GetString(member.Name)))
            {
                return $"{type}.{reader.GetString(member.Name)}";
            }
        }

        return null;
    }

    /// <summary>Returns the name of a type in the folder with its members, or null for a nested type, which is in its outer one.</summary>
    private (string Type, HashSet<string>? Members)? Find(MetadataReader reader, TypeReferenceHandle handle)
    {
        TypeReference type = reader.GetTypeReference(handle);
        if (type.ResolutionScope.Kind != HandleKind.AssemblyReference)
        {
            return null;
        }

        string assembly = reader.GetString(reader.GetAssemblyReference((AssemblyReferenceHandle)type.ResolutionScope).Name);
        string name = NameOf(reader, type.Namespace, type.Name);

        // The library of another package is beside this one.
        return assembly.StartsWith("KernelTls", StringComparison.Ordinal) ? null : (name, Members(assembly, name));
    }

    private HashSet<string>? Members(string assembly, string type)
    {
        const int LongestChain = 8;
        for (int i = 0; i < LongestChain; i++)
        {
            if (!_assemblies.TryGetValue(assembly, out Dictionary<string, HashSet<string>>? types))
            {
                _assemblies[assembly] = types = Read(assembly);
            }

            if (types?.GetValueOrDefault(type) is { } members)
            {
                return members;
            }

            if (!_forwards.TryGetValue((assembly, type), out assembly!))
            {
                break;
            }
        }

        return null;
    }

    private Dictionary<string, HashSet<string>>? Read(string assembly)
    {
        string path = Path.Combine(folder, $"{assembly}.dll");
        if (!File.Exists(path))
        {
            return null;
        }

        using PEReader pe = new(File.OpenRead(path));
        MetadataReader reader = pe.GetMetadataReader();
        foreach (ExportedType exported in reader.ExportedTypes.Select(reader.GetExportedType))
        {
            if (exported.Implementation.Kind == HandleKind.AssemblyReference)
            {
                _forwards[(assembly, NameOf(reader, exported.Namespace, exported.Name))] =
                    reader.GetString(reader.GetAssemblyReference((AssemblyReferenceHandle)exported.Implementation).Name);
            }
        }

        return reader.TypeDefinitions.Select(reader.GetTypeDefinition).Where(t => !t.IsNested).ToDictionary(
            t => NameOf(reader, t.Namespace, t.Name),
            t => t.GetMethods().Select(m => reader.GetString(reader.GetMethodDefinition(m).Name))
                .Concat(t.GetFields().Select(f => reader.GetString(reader.GetFieldDefinition(f).Name)))
                .ToHashSet(StringComparer.Ordinal));
    }

    private static string NameOf(MetadataReader reader, StringHandle space, StringHandle name) => $"{reader.GetString(space)}.{reader.GetString(name)}";
}
