using System.Runtime.InteropServices;

namespace KernelTls.Tool.Output;

/// <summary>Writes to standard output. A failure becomes the end of the command: a <see cref="ToolFailedException"/>.</summary>
/// <remarks>.NET discards what is written to a pipe without a reader, so that <c>ktls info | head</c> is no failure.</remarks>
internal sealed partial class StandardOutput : Stream
{
    private const short PollError = 0x8;
    private const short PollHangUp = 0x10;
    private const int Descriptor = 1;

    private readonly Stream _inner;

    private StandardOutput(Stream inner) => _inner = inner;

    /// <summary>Gets a value that indicates whether standard output is a pipe or a socket whose reader has left.</summary>
    public static bool IsAbandoned
    {
        get
        {
            PollDescriptor descriptor = new() { Descriptor = Descriptor };
            return !OperatingSystem.IsWindows() && Poll(ref descriptor, 1, 0) > 0 && (descriptor.Returned & (PollError | PollHangUp)) != 0;
        }
    }

    public override bool CanRead => false;

    public override bool CanWrite => true;

    public override bool CanSeek => false;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    /// <summary>Replaces the console's writers where they are not terminals. Messages that cannot be written are lost.</summary>
    public static void Redirect()
    {
        if (Console.IsOutputRedirected)
        {
            Console.SetOut(new StreamWriter(Open()) { AutoFlush = true });
        }

        if (Console.IsErrorRedirected)
        {
            Console.SetError(new ErrorWriter());
        }
    }

    public static Stream Open() => new StandardOutput(Try(Console.OpenStandardOutput));

    public override void Write(byte[] buffer, int offset, int count) => Write(buffer.AsSpan(offset, count));

    public override void Write(ReadOnlySpan<byte> buffer)
    {
        try
        {
            _inner.Write(buffer);
        }
        catch (Exception e) when (IsFailure(e))
        {
            throw Failed(e);
        }
    }

    public override void Flush() => _inner.Flush();

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    private static T Try<T>(Func<T> work)
    {
        try
        {
            return work();
        }
        catch (Exception e) when (IsFailure(e))
        {
            throw Failed(e);
        }
    }

    private static bool IsFailure(Exception e) => e is IOException or UnauthorizedAccessException or ObjectDisposedException;

    private static ToolFailedException Failed(Exception e) => new(
        ExitCode.Failed, $"standard output cannot be written: {e.Message.TrimEnd('.')}. Write to a file system with space, or to a pipe.", e);

    [LibraryImport("libc", EntryPoint = "poll")]
    private static partial int Poll(ref PollDescriptor descriptors, nuint count, int timeout);

    [StructLayout(LayoutKind.Sequential)]
    private struct PollDescriptor
    {
        public int Descriptor;
        public short Requested;
        public short Returned;
    }
}
