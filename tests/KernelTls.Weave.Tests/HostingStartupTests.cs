using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using Microsoft.CodeAnalysis;
using KernelTls.Weave.Images;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the attribute that <c>ktls weave</c> adds to a web application.</summary>
public class HostingStartupTests
{
    private const string Source = """
        [assembly: System.Reflection.AssemblyMetadata("first", "1")]
        [assembly: System.Reflection.AssemblyMetadata("second", "2")]
        [Obsolete("type")]
        public static class Sample
        {
            [Obsolete("method")]
            public static object Run(Stream s) => new SslStream(s);
            [return: System.Diagnostics.CodeAnalysis.NotNull]
            public static T Generic<[System.Diagnostics.CodeAnalysis.DynamicallyAccessedMembers(System.Diagnostics.CodeAnalysis.DynamicallyAccessedMemberTypes.All)] T>([System.ComponentModel.DefaultValue(1)] T value) => value;
        }
        """;

    private static readonly Version s_version = new(1, 2, 3, 4);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void The_attribute_is_added_once_and_the_others_stay(bool woven)
    {
        Compiled sample = Compiled.From(Source);
        byte[] image = woven ? sample.Weave().Image! : sample.Image;

        byte[] added = HostingStartup.Add(image, s_version);

        Assert.False(HostingStartup.IsIn(image));
        Assert.True(HostingStartup.IsIn(added));
        string[] before = Attributes(image), after = Attributes(added);
        Assert.True(before.Length > 8, string.Join('\n', before));
        Assert.Equal(
            "Assembly HostingStartupAttribute KernelTls.AspNetCore.KernelTlsHostingStartup, KernelTls.AspNetCore, Version=1.2.3.4, Culture=neutral, PublicKeyToken=null",
            Assert.Single(after.Except(before)));
        Assert.Equal(before, after.Where(a => !a.Contains("HostingStartup", StringComparison.Ordinal)));
    }

    /// <summary>The table must be sorted by what has the attribute (ECMA-335, II.22.10): the runtime searches in it.</summary>
    [Fact]
    public void The_table_stays_sorted()
    {
        byte[] added = HostingStartup.Add(Compiled.From(Source).Image, s_version);
        using PEReader pe = new(new MemoryStream(added));
        MetadataReader reader = pe.GetMetadataReader();

        int[] parents = [.. reader.CustomAttributes.Select(a => CodedIndex.HasCustomAttribute(reader.GetCustomAttribute(a).Parent))];

        Assert.Equal(parents.Order(), parents);
    }

    [Fact]
    public void The_program_runs_as_before_with_another_identity()
    {
        Compiled sample = Compiled.From(Source);

        System.Reflection.Assembly loaded = Compiled.Load(HostingStartup.Add(sample.Weave().Image!, s_version));

        Assert.IsType<System.Net.Security.SslStream>(Compiled.Run(loaded, new MemoryStream()), exactMatch: true);
        Assert.Equal("method", loaded.GetType("Sample")!.GetMethod("Run")!.GetCustomAttributesData().Single().ConstructorArguments.Single().Value);
        Assert.NotEqual(Compiled.Load(sample.Weave().Image!).ManifestModule.ModuleVersionId, loaded.ManifestModule.ModuleVersionId);
    }

    [Fact]
    public void An_assembly_that_knows_neither_Type_nor_ASP_NET_Core_gets_the_references()
    {
        byte[] added = HostingStartup.Add(Compiled.From("public static class Sample { }").Image, s_version);
        using PEReader pe = new(new MemoryStream(added));
        MetadataReader reader = pe.GetMetadataReader();

        AssemblyReference reference = reader.AssemblyReferences.Select(reader.GetAssemblyReference)
            .Single(r => reader.GetString(r.Name) == "Microsoft.AspNetCore.Hosting.Abstractions");
        Assert.Equal("ADB9793829DDAE60", Convert.ToHexString(reader.GetBlobBytes(reference.PublicKeyOrToken)));
        Assert.True(HostingStartup.IsIn(added));
    }

    [Fact]
    public void Native_code_is_refused()
    {
        byte[] image = File.ReadAllBytes(typeof(System.Net.Security.SslStream).Assembly.Location);

        Assert.Contains("ReadyToRun", Assert.Throws<UnsupportedImageException>(() => HostingStartup.Add(image, s_version)).Message, StringComparison.Ordinal);
    }

    /// <summary>Lists the attributes: what has them, their class, and their first argument if it is text.</summary>
    private static string[] Attributes(byte[] image)
    {
        using PEReader pe = new(new MemoryStream(image));
        MetadataReader reader = pe.GetMetadataReader();
        return
        [
            .. from handle in reader.CustomAttributes
               let attribute = reader.GetCustomAttribute(handle)
               let type = (TypeReferenceHandle)reader.GetMemberReference((MemberReferenceHandle)attribute.Constructor).Parent
               let owner = attribute.Parent.Kind == HandleKind.AssemblyDefinition ? "Assembly" : $"{MetadataTokens.GetToken(attribute.Parent):x}"
               select $"{owner} {reader.GetString(reader.GetTypeReference(type).Name)} {Text(reader.GetBlobReader(attribute.Value))}",
        ];

        static string Text(BlobReader value)
        {
            value.Offset = 2;
            byte[] rest = value.ReadBytes(value.RemainingBytes);
            value.Offset = 2;
            try
            {
                return value.ReadSerializedString() ?? "";
            }
            catch (BadImageFormatException)
            {
                return Convert.ToHexString(rest);
            }
        }
    }
}
