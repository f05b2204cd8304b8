using KernelTls.Weave;
using KernelTls.Weave.Images;

namespace KernelTls.Fuzz;

/// <summary>
/// Tests the weaver with damaged assemblies: this program's, some bytes of which are changed. Weaving must succeed or refuse the image, and
/// must end.
/// </summary>
internal sealed class WeaverTarget : FuzzTarget
{
    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(30);

    private readonly Lazy<byte[]> _image = new(() => File.ReadAllBytes(typeof(WeaverSample).Assembly.Location));
    private readonly Lazy<Replacements> _replacements = new(() => Replacements.Read(typeof(KtlsStream).Assembly.Location));

    public override string Name => "weaver";

    public override byte[] Create(Random random)
    {
        byte[] image = [.. _image.Value];
        for (int changes = random.Next(1, 6); changes > 0; changes--)
        {
            image[random.Next(image.Length)] = random.Next(3) == 0 ? (byte)random.Next(4) : (byte)random.Next(256);
        }

        return random.Next(50) == 0 ? image[..random.Next(image.Length)] : image;
    }

    public override async Task TryAsync(byte[] input)
    {
        try
        {
            await Task.Run(() => AssemblyWeaver.Weave(input, _replacements.Value)).WaitAsync(s_limit);
        }
        catch (UnsupportedImageException)
        {
            // A build warns of it.
        }
        catch (TimeoutException)
        {
            throw new FuzzException($"The weaver did not end within {s_limit.TotalSeconds} s.");
        }
        catch (Exception e)
        {
            throw new FuzzException($"The weaver let an exception out: {e}");
        }
    }
}
