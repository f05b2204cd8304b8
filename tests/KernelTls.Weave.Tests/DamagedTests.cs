using KernelTls.Tests;
using KernelTls.Weave.Images;

namespace KernelTls.Weave.Tests;

/// <summary>Tests damaged assemblies: a build gets a warning, and neither an exception of another type nor an endless loop.</summary>
public class DamagedTests
{
    private const int Inputs = 3000;

    private const string Source = """
        public class Own<T>(Stream s) : SslStream(s)
        {
            public System.Collections.Generic.List<System.Collections.Generic.Dictionary<string, T[]>> All { get; } = [];
            public class Inner : Own<int>
            {
                public Inner(Stream s) : base(s) { }
                public int Choose(int i) => i switch { 0 => 4, 1 => 2, 2 => 7, 3 => Choose(4), 4 => 9, 5 => 11, _ => 0 };
            }
        }
        public static class Sample
        {
            public static object Run(Stream s)
            {
                SslStream stream = new Own<int>.Inner(s);
                _ = new System.Net.Http.HttpClient();
                return stream.CanRead ? stream : new SslStream(s, false, (_, _, _, _) => true);
            }
        }
        """;

    /// <summary>A switch of -2 targets would lead back to itself.</summary>
    [Theory]
    [InlineData(-2)]
    [InlineData(int.MinValue)]
    [InlineData(int.MaxValue)]
    [InlineData(3)]
    public void A_switch_leads_on(int targets)
    {
        const int Switch = 0x45, Tiny = 2, Length = 10;
        byte[] body = [(Length << 2) | Tiny, Switch, .. BitConverter.GetBytes(targets), 0, 0, 0, 0, 0];

        Assert.Throws<BadImageFormatException>(() => MethodBody.Instructions(body, 0).Count());
    }

    [Fact]
    public async Task A_changed_byte_is_a_result_or_a_refusal()
    {
        Compiled sample = Compiled.From(Source);
        Random random = new(20261129);
        List<string> escaped = [];
        int refused = 0;
        await Limits.Blocking(() =>
        {
            for (int i = 0; i < Inputs; i++)
            {
                byte[] image = [.. sample.Image];
                for (int changes = random.Next(1, 4); changes > 0; changes--)
                {
                    image[random.Next(image.Length)] = (byte)random.Next(256);
                }

                try
                {
                    _ = AssemblyWeaver.Weave(image, Compiled.Replacements);
                }
                catch (UnsupportedImageException)
                {
                    refused++;
                }
                catch (Exception e)
                {
                    escaped.Add($"{e.GetType()}: {e.StackTrace!.Split('\n').First(line => line.Contains("KernelTls", StringComparison.Ordinal))}");
                }
            }
        }).Within(TimeSpan.FromMinutes(2), "the weaver");

        Assert.Equal([], escaped.Distinct());
        Assert.InRange(refused, Inputs / 50, Inputs);
    }
}
