using System.Diagnostics;
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
using System.Security.Cryptography;
using KernelTls.Tests;
using KernelTls.Weave.Images;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the parts of an assembly other than code (symbols, strong name, resources, version), and forms that cannot be woven.</summary>
public class FormTests
{
    private const string Throws = """
        public static class Sample
        {
            public static object Run(Stream s)
            {
                _ = new SslStream(s);
                throw new TimeoutException();
            }
        }
        """;

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Symbols_stay_true(bool embedded)
    {
        Compiled sample = Compiled.From(Throws, embedSymbols: embedded);
        Assembly woven = Compiled.Load(sample.Weave().Image!, sample.Symbols);

        TimeoutException thrown = Assert.Throws<TimeoutException>(() => Compiled.Run(woven, new MemoryStream()));

        StackFrame frame = new StackTrace(thrown, fNeedFileInfo: true).GetFrame(0)!;
        Assert.Equal("/_/Sample.cs", frame.GetFileName());
        Assert.Equal(13, frame.GetFileLineNumber());
    }

    [Fact]
    public void The_symbols_of_the_original_are_those_of_the_woven_one()
    {
        Compiled sample = Compiled.From(Throws);

        Assert.Equal(SymbolsOf(sample.Image), SymbolsOf(sample.Weave().Image!));

        static Guid SymbolsOf(byte[] image)
        {
            using PEReader pe = new(new MemoryStream(image));
            return pe.ReadCodeViewDebugDirectoryData(pe.ReadDebugDirectory().First(e => e.Type == DebugDirectoryEntryType.CodeView)).Guid;
        }
    }

    [Fact]
    public void A_strong_name_stays_and_its_signature_goes()
    {
        using RSA key = RSA.Create(1024);
        using TemporaryDirectory directory = new();
        File.WriteAllBytes(directory["key.snk"], KeyBlob(key));
        Compiled sample = Compiled.From(
            Throws, options: o => o.WithCryptoKeyFile(directory["key.snk"]).WithStrongNameProvider(new DesktopStrongNameProvider()));
        byte[] woven = sample.Weave().Image!;

        Assert.Contains(Signature(sample.Image), b => b != 0);
        Assert.DoesNotContain(Signature(woven), b => b != 0);
        Assert.Equal(Compiled.Load(sample.Image).FullName, Compiled.Load(woven).FullName);
        Assert.NotEmpty(Compiled.Load(woven).GetName().GetPublicKeyToken()!);

        static byte[] Signature(byte[] image)
        {
            using PEReader pe = new(new MemoryStream(image));
            DirectoryEntry signature = pe.PEHeaders.CorHeader!.StrongNameSignatureDirectory;
            return pe.GetSectionData(signature.RelativeVirtualAddress).GetContent(0, signature.Size).ToArray();
        }
    }

    [Fact]
    public void Resources_constants_and_the_version_of_the_file_stay()
    {
        byte[] content = [.. Enumerable.Range(0, 100_000).Select(i => (byte)i)];
        Compiled sample = Compiled.From(
            $$"""
            [assembly: System.Reflection.AssemblyFileVersion("1.2.3.4")]
            public static class Sample
            {
                private static ReadOnlySpan<int> Numbers => [1, 2, 3, 4, 5, 6, 7, 8];
                public static object Run(Stream s) => (new SslStream(s).CanRead ? 0 : 1) + Numbers[7];
                {{string.Join('\n', Enumerable.Range(0, 400).Select(i => $"public static void Method{i}(int parameter{i}) {{ }}"))}}
            }
            """,
            resources: [new ResourceDescription("data", () => new MemoryStream(content), isPublic: true)]);
        using TemporaryDirectory directory = new();
        byte[] woven = sample.Weave().Image!;
        File.WriteAllBytes(directory["woven.dll"], woven);
        Assembly loaded = Compiled.Load(woven);

        Assert.Equal("1.2.3.4", FileVersionInfo.GetVersionInfo(directory["woven.dll"]).FileVersion);
        using MemoryStream read = new();
        loaded.GetManifestResourceStream("data")!.CopyTo(read);
        Assert.Equal(content, read.ToArray());
        Assert.Equal(9, Compiled.Run(loaded, new MemoryStream()));
        Assert.True(SectionsMoved(sample.Image, woven), "The test wants metadata that takes more pages.");
    }

    /// <summary>Asserts that sections do not overlap, and that each address in the headers is inside one.</summary>
    [Theory]
    [InlineData(1, Platform.AnyCpu)]
    [InlineData(400, Platform.AnyCpu)]
    [InlineData(4000, Platform.AnyCpu)]
    [InlineData(1, Platform.X64)]
    [InlineData(400, Platform.X64)]
    public void The_headers_are_right_for_metadata_of_any_size(int methods, Platform platform)
    {
        string code = string.Join('\n', Enumerable.Range(0, methods).Select(i => $"public object Method{i}(Stream s{i}) => new SslStream(s{i});"));
        Compiled sample = Compiled.From($"public class Many {{ {code} }}\n" + Throws, options: o => o.WithPlatform(platform));
        byte[] woven = sample.Weave().Image!;
        using PEReader pe = new(new MemoryStream(woven));

        int address = 0, position = 0;
        foreach (SectionHeader section in pe.PEHeaders.SectionHeaders)
        {
            Assert.Equal(0, section.VirtualAddress % pe.PEHeaders.PEHeader!.SectionAlignment);
            Assert.InRange(section.VirtualAddress, address, int.MaxValue);
            Assert.InRange(section.PointerToRawData, position, int.MaxValue);
            Assert.InRange(section.VirtualSize, 1, section.SizeOfRawData);
            address = section.VirtualAddress + section.VirtualSize;
            position = section.PointerToRawData + section.SizeOfRawData;
        }

        Assert.Equal(woven.Length, position);
        Assert.InRange(pe.PEHeaders.PEHeader!.SizeOfImage, address, address + pe.PEHeaders.PEHeader.SectionAlignment);
        if (platform == Platform.AnyCpu)
        {
            int relocations = pe.PEHeaders.PEHeader.BaseRelocationTableDirectory.RelativeVirtualAddress;
            Assert.Equal(".reloc", pe.PEHeaders.SectionHeaders[pe.PEHeaders.GetContainingSectionIndex(relocations)].Name);
        }

        Assert.Throws<TimeoutException>(() => Compiled.Run(Compiled.Load(woven), new MemoryStream()));
    }

    [Fact]
    public void What_is_no_assembly_is_refused() =>
        Assert.Equal("it is not a managed assembly", Refusal(File.ReadAllBytes("/bin/sh")));

    /// <summary>An assembly that only uses clients created by others is left unchanged, whatever its form.</summary>
    [Fact]
    public void An_assembly_with_nothing_to_weave_is_not_refused() => Assert.Null(AssemblyWeaver.Weave(
        File.ReadAllBytes(typeof(System.Net.Http.Json.HttpClientJsonExtensions).Assembly.Location), Compiled.Replacements).Image);

    /// <summary>The runtime's own assemblies have native code.</summary>
    [Fact]
    public void Native_code_beside_IL_is_refused() => Assert.Equal(
        "it was compiled to native code (ReadyToRun), which weaving would contradict",
        Refusal(File.ReadAllBytes(typeof(System.Net.Mail.SmtpClient).Assembly.Location)));

    [Fact]
    public void A_damaged_assembly_is_refused_and_not_half_woven()
    {
        byte[] image = Compiled.From(Throws).Image;
        using PEReader pe = new(new MemoryStream(image));
        int body = pe.GetMetadataReader().MethodDefinitions.Select(h => pe.GetMetadataReader().GetMethodDefinition(h).RelativeVirtualAddress).Max();
        SectionHeader section = pe.PEHeaders.SectionHeaders[0];
        image[body - section.VirtualAddress + section.PointerToRawData] = 0; // no header of a method body

        Assert.StartsWith("it is damaged", Refusal(image), StringComparison.Ordinal);
    }

    private static string Refusal(byte[] image) =>
        Assert.Throws<UnsupportedImageException>(() => AssemblyWeaver.Weave(image, Compiled.Replacements)).Message;

    private static bool SectionsMoved(byte[] before, byte[] after)
    {
        using PEReader first = new(new MemoryStream(before)), second = new(new MemoryStream(after));
        return first.PEHeaders.SectionHeaders[1].VirtualAddress != second.PEHeaders.SectionHeaders[1].VirtualAddress;
    }

    /// <summary>Returns a key pair in the format of strong names, a PRIVATEKEYBLOB of CryptoAPI.</summary>
    private static byte[] KeyBlob(RSA key)
    {
        RSAParameters p = key.ExportParameters(includePrivateParameters: true);
        return
        [
            7, 2, 0, 0, 0, 0x24, 0, 0, .. "RSA2"u8, .. BitConverter.GetBytes(key.KeySize), .. p.Exponent!.Reverse(), 0,
            .. p.Modulus!.Reverse(), .. p.P!.Reverse(), .. p.Q!.Reverse(), .. p.DP!.Reverse(), .. p.DQ!.Reverse(),
            .. p.InverseQ!.Reverse(), .. p.D!.Reverse(),
        ];
    }
}
