using System.Net;

namespace KernelTls.Tests;

/// <summary>Represents a request body that is written while the response is read.</summary>
internal sealed class DuplexContent : HttpContent
{
    private readonly TaskCompletionSource<Stream> _opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource _complete = new(TaskCreationOptions.RunContinuationsAsynchronously);

    public Task<Stream> Opened => _opened.Task;

    public void Complete() => _complete.TrySetResult();

    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) =>
        SerializeToStreamAsync(stream, context, CancellationToken.None);

    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken)
    {
        await stream.FlushAsync(cancellationToken);
        _opened.SetResult(stream);
        await _complete.Task.WaitAsync(cancellationToken);
    }

    protected override bool TryComputeLength(out long length)
    {
        length = 0;
        return false;
    }
}
