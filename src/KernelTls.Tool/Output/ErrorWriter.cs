using System.Text;

namespace KernelTls.Tool.Output;

/// <summary>Writes lines to standard error, and loses those that cannot be written: nothing is left to report that to.</summary>
internal sealed class ErrorWriter : TextWriter
{
    private readonly Stream? _stream = OpenOrNull();

    public override Encoding Encoding { get; } = new UTF8Encoding(encoderShouldEmitUTF8Identifier: false);

    public override void Write(char value) => Write(value.ToString());

    public override void Write(char[] buffer, int index, int count) => Write(new string(buffer, index, count));

    public override void WriteLine(string? value) => Write(value + "\n");

    public override void Write(string? value)
    {
        try
        {
            _stream?.Write(Encoding.GetBytes(value ?? ""));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ObjectDisposedException)
        {
            // A full disk, or a closed descriptor.
        }
    }

    private static Stream? OpenOrNull()
    {
        try
        {
            return Console.OpenStandardError();
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return null;
        }
    }
}
