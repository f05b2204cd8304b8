using System.Buffers;
using System.IO.Pipelines;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging.Abstractions;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests a file if Kestrel does not behave as expected: a failure, never an incorrect byte.</summary>
public class FilePlaceholderTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every.Where(m => m != TlsMode.Stock)];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Files_and_memory_are_sent_in_turn(TlsMode mode)
    {
        using PatternFile file = new(300_000);
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        TlsPipeWriter writer = output.Writer;
        Task receiving = Pattern.ReceiveAsync(output.Client, 100_000);

        Write(writer, Part(file, 0, 10_000));
        writer.Write(Pattern.Take(10_000, 10_000));
        writer.GetMemory(9_000);
        Write(writer, Part(file, 20_000, 40_000));
        Write(writer, Part(file, 60_000, 10_000));
        writer.Write(Pattern.Take(30_000, 70_000));
        Assert.Equal(100_000, writer.UnflushedBytes);
        Assert.False((await writer.FlushAsync().InTime()).IsCompleted);

        await receiving.InTime();
        Assert.Equal(0, writer.UnflushedBytes);
        Assert.Empty(output.Failures);
    }

    [Fact]
    public void Nobody_can_look_into_it()
    {
        using PatternFile file = new(10);
        using FilePlaceholder part = Part(file, 0, 10);

        Assert.Equal(10, part.Memory.Length);
        Assert.True(part.Matches(part.Memory));
        Assert.False(part.Matches(part.Memory[1..]));
        Assert.False(part.Matches(new byte[10]));
        Assert.Throws<InvalidOperationException>(() => part.Memory.Span[0]);
        Assert.Throws<InvalidOperationException>(() => part.Memory.ToArray());
        Assert.Throws<InvalidOperationException>(() => part.Memory.Pin());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Less_than_was_announced_breaks_the_connection(TlsMode mode)
    {
        using PatternFile file = new(10);
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        TlsPipeWriter writer = output.Writer;
        writer.Announce(Part(file, 0, 10));
        writer.GetMemory();

        Assert.Throws<InvalidOperationException>(() => writer.Advance(9));

        writer.Withdraw();
        Assert.Single(output.Failures);
        Assert.True((await writer.WriteAsync(new byte[1]).InTime()).IsCompleted);
    }

    /// <summary>Kestrel has counted data that a concurrent flush then prevented from arriving here.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Two_that_write_at_once_break_the_connection(TlsMode mode)
    {
        using PatternFile file = new(100_000);
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        FeatureCollection request = new();
        request.Set(new ResponseFiles(output.Writer, "id", NullLogger.Instance));
        request.Set<IHttpResponseFeature>(new HttpResponseFeature { Headers = { ContentLength = 100_000 } });
        request.Set<IHttpResponseBodyFeature>(new Body(new Disturbed(output.Writer)));
        ResponseFiles.Attach(request);

        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => request.GetRequiredFeature<IHttpResponseBodyFeature>().SendFileAsync(file.FullName, 0, null));

        Assert.IsType<ArgumentOutOfRangeException>(Assert.Single(output.Failures));
        Assert.True((await output.Writer.WriteAsync(new byte[1]).InTime()).IsCompleted);
    }

    private static FilePlaceholder Part(PatternFile file, long offset, int length) => new(file.Handle, offset, length, ownsFile: false);

    private static void Write(TlsPipeWriter writer, FilePlaceholder part)
    {
        writer.Announce(part);
        Assert.True(part.Matches(writer.GetMemory()));
        writer.Advance(part.Length);
        Assert.True(part.IsQueued);
        writer.Withdraw();
    }

    private sealed class Body(PipeWriter writer) : IHttpResponseBodyFeature
    {
        public Stream Stream => throw new NotSupportedException();

        public PipeWriter Writer => writer;

        public Task StartAsync(CancellationToken cancellationToken = default) => Task.CompletedTask;

        public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default) =>
            throw new NotSupportedException();

        public Task CompleteAsync() => throw new NotSupportedException();

        public void DisableBuffering() => throw new NotSupportedException();
    }

    private sealed class Disturbed(PipeWriter inner) : PipeWriter
    {
        public override Memory<byte> GetMemory(int sizeHint = 0) => inner.GetMemory(sizeHint);

        public override Span<byte> GetSpan(int sizeHint = 0) => inner.GetSpan(sizeHint);

        public override void Advance(int bytes) => throw new ArgumentOutOfRangeException(nameof(bytes));

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default) => throw new NotSupportedException();

        public override void CancelPendingFlush() => throw new NotSupportedException();

        public override void Complete(Exception? exception = null) => throw new NotSupportedException();
    }
}
