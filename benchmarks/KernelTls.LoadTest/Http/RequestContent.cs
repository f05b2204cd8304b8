using System.Net;

namespace KernelTls.LoadTest.Http;

/// <summary>Represents the body of a request, which is written in parts.</summary>
internal sealed class RequestContent(HttpClientOptions options, ReadOnlyMemory<byte> part) : HttpContent
{
    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) =>
        SerializeToStreamAsync(stream, context, CancellationToken.None);

    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken)
    {
        for (int left = options.RequestContentSize; left > 0; left -= part.Length)
        {
            await stream.WriteAsync(part[..Math.Min(left, part.Length)], cancellationToken);
            if (options.RequestContentFlushAfterWrite)
            {
                await stream.FlushAsync(cancellationToken);
            }
        }
    }

    protected override bool TryComputeLength(out long length)
    {
        length = options.RequestContentSize;
        return !options.RequestContentUnknownLength;
    }
}
