using System.Buffers.Binary;
using System.Net;
using System.Net.Http.Headers;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Makes a call in the manner of gRPC: messages with a flag and a length prefix, both ways on one HTTP/2 stream, and
/// trailers.
/// </summary>
internal sealed class Call : IDisposable
{
    private const int PrefixSize = 5;
    private readonly HttpRequestMessage _request;
    private readonly DuplexContent _content;
    private readonly CancellationTokenSource _cancellation = new();
    private readonly Task<HttpResponseMessage> _sending;

    public Call(HttpClient client, Uri address)
    {
        _content = new DuplexContent();
        _content.Headers.ContentType = new MediaTypeHeaderValue("application/grpc");
        _request = new HttpRequestMessage(HttpMethod.Post, address)
        {
            Content = _content,
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        _request.Headers.TE.Add(new TransferCodingWithQualityHeaderValue("trailers"));
        _sending = client.SendAsync(_request, HttpCompletionOption.ResponseHeadersRead, _cancellation.Token);
    }

    /// <summary>Sends a message immediately.</summary>
    public async Task WriteAsync(ReadOnlyMemory<byte> message) =>
        await WriteAsync(await _content.Opened.InTime("the request to begin"), message).InTime($"a message of {message.Length} bytes to be taken");

    /// <summary>Reads the next message of the response, or returns null after the last.</summary>
    public async Task<byte[]?> ReadAsync()
    {
        HttpResponseMessage response = await _sending.InTime("the head of the answer");
        return await ReadAsync(await response.Content.ReadAsStreamAsync(), _cancellation.Token).InTime("a message");
    }

    /// <summary>Completes the request.</summary>
    public void Complete() => _content.Complete();

    /// <summary>Cancels the call and a waiting read.</summary>
    public async Task CancelAsync()
    {
        await _cancellation.CancelAsync();
        (await _sending).Dispose();
    }

    /// <summary>Returns a trailer of the response.</summary>
    public async Task<string> TrailerAsync(string name) => Assert.Single((await _sending).TrailingHeaders.GetValues(name));

    public void Dispose()
    {
        _cancellation.Cancel();
        if (_sending.IsCompletedSuccessfully)
        {
            _sending.Result.Dispose();
        }

        _request.Dispose();
        _cancellation.Dispose();
    }

    public static async Task WriteAsync(Stream to, ReadOnlyMemory<byte> message)
    {
        byte[] framed = new byte[PrefixSize + message.Length];
        BinaryPrimitives.WriteInt32BigEndian(framed.AsSpan(1), message.Length);
        message.CopyTo(framed.AsMemory(PrefixSize));
        await to.WriteAsync(framed);
        await to.FlushAsync();
    }

    public static async Task<byte[]?> ReadAsync(Stream from, CancellationToken cancellationToken = default)
    {
        byte[] prefix = new byte[PrefixSize];
        int read = await from.ReadAtLeastAsync(prefix, PrefixSize, throwOnEndOfStream: false, cancellationToken);
        if (read == 0)
        {
            return null;
        }

        Assert.Equal(PrefixSize, read);
        Assert.Equal(0, prefix[0]);
        byte[] message = new byte[BinaryPrimitives.ReadInt32BigEndian(prefix.AsSpan(1))];
        await from.ReadExactlyAsync(message, cancellationToken);
        return message;
    }
}
