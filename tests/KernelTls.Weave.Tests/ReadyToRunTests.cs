using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
using KernelTls.Weave.Images;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the removal of native code, on the framework's own assemblies. PackageTests run such ones of an application.</summary>
public class ReadyToRunTests
{
    public static TheoryData<string> Assemblies => ["System.Net.Mail.dll", "System.Net.Http.dll", "System.Net.WebSockets.Client.dll", "System.Net.Requests.dll"];

    [Theory]
    [MemberData(nameof(Assemblies))]
    public void Without_native_code_it_can_be_woven_and_its_IL_is_the_same(string name)
    {
        byte[] image = Read(name);
        Assert.Throws<UnsupportedImageException>(() => AssemblyWeaver.Weave(image, Compiled.Replacements));

        byte[] removed = ReadyToRun.Remove(image);
        WeaveResult result = AssemblyWeaver.Weave(removed, Compiled.Replacements);

        Assert.NotEmpty(result.Places);
        using PEReader before = new(new MemoryStream(image)), stripped = new(new MemoryStream(removed)), woven = new(new MemoryStream(result.Image!));
        Assert.True(ReadyToRun.IsIn(before));
        Assert.False(ReadyToRun.IsIn(stripped));
        Assert.False(ReadyToRun.IsIn(woven));
        Assert.True(woven.PEHeaders.CorHeader!.Flags.HasFlag(CorFlags.ILOnly));
        Assert.Contains(woven.PEHeaders.CoffHeader.Machine, (Machine[])[Machine.Amd64, Machine.Arm64, Machine.I386]);
        Assert.Equal(Bodies(before), Bodies(stripped));
        Assert.Equal(Bodies(before).Count, Bodies(woven).Count);
    }

    [Fact]
    public void A_part_of_a_composite_image_is_refused()
    {
        const int Component = 0x20;
        byte[] image = Read("System.Net.Mail.dll");
        using (PEReader pe = new(new MemoryStream([.. image])))
        {
            Assert.True(pe.PEHeaders.TryGetDirectoryOffset(pe.PEHeaders.CorHeader!.ManagedNativeHeaderDirectory, out int header));
            Span<byte> flags = image.AsSpan(header + 8);
            BinaryPrimitives.WriteInt32LittleEndian(flags, BinaryPrimitives.ReadInt32LittleEndian(flags) | Component);
        }

        Assert.Contains("composite image", Assert.Throws<UnsupportedImageException>(() => ReadyToRun.Remove(image)).Message, StringComparison.Ordinal);
    }

    private static byte[] Read(string name) => File.ReadAllBytes(Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, name));

    private static List<string> Bodies(PEReader pe)
    {
        MetadataReader reader = pe.GetMetadataReader();
        return [.. reader.MethodDefinitions.Select(reader.GetMethodDefinition).Where(m => m.RelativeVirtualAddress != 0)
            .Select(m => Convert.ToHexString(pe.GetMethodBody(m.RelativeVirtualAddress).GetILBytes()!))];
    }
}
