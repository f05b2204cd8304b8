using System.Collections.Immutable;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Text;
using KernelTls.Weave.Images;

namespace KernelTls.Weave.Tests;

/// <summary>Tests that extended metadata keeps its content, for assemblies of this and other runtimes, as seen by another reader.</summary>
public class MetadataPatchTests
{
    public static TheoryData<string> Assemblies =>
    [
        .. Directory.GetFiles(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "System.Private.*.dll")
            .Concat(Directory.GetFiles(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "System.Net.*.dll"))
            .Concat(Directory.GetFiles(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "*VisualBasic*.dll"))
            .Concat(Directory.GetFiles(AppContext.BaseDirectory, "Microsoft.CodeAnalysis*.dll"))
            .Select(p => Path.GetFileName(p)),
    ];

    [Theory]
    [MemberData(nameof(Assemblies))]
    public void Every_row_stays_when_indices_become_wider(string name)
    {
        byte[] metadata = Read(name);
        MetadataPatch patch = new(metadata);
        uint text = patch.AddString(new string('x', 0x10000));
        uint blob = patch.AddBlob(new byte[0x10000]);
        for (int i = 0; i < 0x10000; i++)
        {
            patch.AddRow(TableIndex.TypeRef, 0, text, text);
        }

        for (int i = 0; i < 0x2000; i++)
        {
            patch.AddRow(TableIndex.MemberRef, 0, text, blob);
            patch.AddRow(TableIndex.TypeSpec, blob);
        }

        Assert.Equal(Describe(metadata), Describe(patch.ToArray(), 0x10000, 0x2000));
    }

    [Fact]
    public void Without_a_change_nothing_changes()
    {
        byte[] metadata = Read("System.Net.Security.dll");

        Assert.Equal(metadata, new MetadataPatch(metadata).ToArray());
    }

    private static byte[] Read(string name)
    {
        string path = Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, name);
        using PEReader pe = new(File.OpenRead(File.Exists(path) ? path : Path.Combine(AppContext.BaseDirectory, name)));
        return pe.GetMetadata().GetContent().ToArray();
    }

    /// <summary>Lists the content of the tables with handles, so that a misplaced value is visible.</summary>
    private static unsafe string Describe(byte[] metadata, int withoutTypes = 0, int withoutMembers = 0)
    {
        fixed (byte* start = metadata)
        {
            MetadataReader r = new(start, metadata.Length);
            StringBuilder text = new();
            foreach (TypeReference t in r.TypeReferences.Take(r.TypeReferences.Count - withoutTypes).Select(r.GetTypeReference))
            {
                Line("ref", Token(t.ResolutionScope), r.GetString(t.Name), r.GetString(t.Namespace));
            }

            foreach (MemberReference m in r.MemberReferences.Take(r.MemberReferences.Count - withoutMembers).Select(r.GetMemberReference))
            {
                Line("member", Token(m.Parent), r.GetString(m.Name), Bytes(m.Signature));
            }

            foreach (TypeDefinition t in r.TypeDefinitions.Select(r.GetTypeDefinition))
            {
                Line("type", r.GetString(t.Name), r.GetString(t.Namespace), t.Attributes, t.BaseType.IsNil ? 0 : Token(t.BaseType), t.GetFields().Count, t.GetMethods().Count, t.GetLayout().Size, Token(t.GetDeclaringType()));
                Tokens(t.GetInterfaceImplementations().Select(i => r.GetInterfaceImplementation(i).Interface));
                Tokens(t.GetProperties().Select(p => (EntityHandle)p).Concat(t.GetEvents().Select(e => (EntityHandle)e)));
                foreach (MethodImplementation i in t.GetMethodImplementations().Select(r.GetMethodImplementation))
                {
                    Line("impl", Token(i.MethodBody), Token(i.MethodDeclaration));
                }
            }

            foreach (MethodDefinition m in r.MethodDefinitions.Select(r.GetMethodDefinition))
            {
                Line("method", r.GetString(m.Name), m.Attributes, m.ImplAttributes, m.RelativeVirtualAddress, Bytes(m.Signature), r.GetString(m.GetImport().Name), m.GetImport().Attributes);
                foreach (Parameter p in m.GetParameters().Select(r.GetParameter))
                {
                    Line("parameter", r.GetString(p.Name), p.Attributes, p.SequenceNumber, Token(p.GetDefaultValue()), Bytes(p.GetMarshallingDescriptor()));
                }
            }

            foreach (FieldDefinition f in r.FieldDefinitions.Select(r.GetFieldDefinition))
            {
                Line("field", r.GetString(f.Name), f.Attributes, Bytes(f.Signature), f.GetRelativeVirtualAddress(), f.GetOffset(), Token(f.GetDefaultValue()));
            }

            foreach (PropertyDefinition p in r.PropertyDefinitions.Select(r.GetPropertyDefinition))
            {
                Line("property", r.GetString(p.Name), Bytes(p.Signature), Token(p.GetAccessors().Getter), Token(p.GetAccessors().Setter));
            }

            foreach (EventDefinition e in r.EventDefinitions.Select(r.GetEventDefinition))
            {
                Line("event", r.GetString(e.Name), Token(e.Type), Token(e.GetAccessors().Adder), Token(e.GetAccessors().Remover));
            }

            foreach (CustomAttribute a in r.CustomAttributes.Select(r.GetCustomAttribute))
            {
                Line("attribute", Token(a.Parent), Token(a.Constructor), Bytes(a.Value));
            }

            for (int i = 1; i <= r.GetTableRowCount(TableIndex.Constant); i++)
            {
                Constant c = r.GetConstant(MetadataTokens.ConstantHandle(i));
                Line("constant", c.TypeCode, Token(c.Parent), Bytes(c.Value));
            }

            for (int i = 1; i <= r.GetTableRowCount(TableIndex.GenericParam); i++)
            {
                GenericParameter p = r.GetGenericParameter(MetadataTokens.GenericParameterHandle(i));
                Line("generic", Token(p.Parent), r.GetString(p.Name), p.Index, p.Attributes);
                Tokens(p.GetConstraints().Select(c => r.GetGenericParameterConstraint(c).Type));
            }

            for (int i = 1; i <= r.GetTableRowCount(TableIndex.MethodSpec); i++)
            {
                MethodSpecification m = r.GetMethodSpecification(MetadataTokens.MethodSpecificationHandle(i));
                Line("instance", Token(m.Method), Bytes(m.Signature));
            }

            for (int i = 1; i <= r.GetTableRowCount(TableIndex.TypeSpec) - withoutMembers; i++)
            {
                Line("spec", Bytes(r.GetTypeSpecification(MetadataTokens.TypeSpecificationHandle(i)).Signature));
            }

            foreach (ExportedType t in r.ExportedTypes.Select(r.GetExportedType))
            {
                Line("exported", r.GetString(t.Name), Token(t.Implementation));
            }

            foreach (AssemblyReference a in r.AssemblyReferences.Select(r.GetAssemblyReference))
            {
                Line("assembly", r.GetString(a.Name), a.Version, Bytes(a.PublicKeyOrToken));
            }

            foreach (ManifestResource m in r.ManifestResources.Select(r.GetManifestResource))
            {
                Line("resource", r.GetString(m.Name), m.Offset, m.Implementation.IsNil);
            }

            return text.ToString();

            void Line(params object[] values) => text.AppendJoin(' ', values).Append('\n');
            void Tokens(IEnumerable<EntityHandle> handles) => Line([.. handles.Select(h => (object)Token(h))]);
            string Bytes(BlobHandle blob) => blob.IsNil ? "-" : Convert.ToHexString(r.GetBlobContent(blob).AsSpan());
        }

        static int Token(EntityHandle handle) => handle.IsNil ? 0 : MetadataTokens.GetToken(handle);
    }
}
