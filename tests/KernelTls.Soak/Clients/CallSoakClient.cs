using System.Globalization;
using System.Net;
using System.Net.Http.Headers;
using KernelTls.Tests;

namespace KernelTls.Soak;

/// <summary>
/// Makes calls in the manner of gRPC: messages both ways on one HTTP/2 stream, each answered before the next or all at
/// once.
/// </summary>
internal sealed class CallSoakClient(SoakContext context, int seed) : HttpSoakClient(context, HttpVersion.Version20, keeps: false, seed)
{
    protected override string Kind => "calls";

    protected override async Task OperateAsync(CancellationToken limit)
    {
        ReadOnlyMemory<byte>[] messages =
            [.. Enumerable.Range(0, 1 + Random.Next(8)).Select(_ => Payload.Take(Random, Payload.ChooseSize(Random) / 4))];
        using DuplexContent content = new();
        content.Headers.ContentType = new MediaTypeHeaderValue("application/grpc");
        using HttpRequestMessage request = new(HttpMethod.Post, "/call")
        {
            Content = content,
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        using HttpResponseMessage response = await Client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, limit);
        response.EnsureSuccessStatusCode();
        Stream requests = await content.Opened.WaitAsync(limit);
        Stream answers = await response.Content.ReadAsStreamAsync(limit);
        if (Random.Next(2) == 0)
        {
            foreach (ReadOnlyMemory<byte> message in messages)
            {
                await SendAsync(requests, message, limit);
                await VerifyAsync(answers, message, limit);
            }
        }
        else
        {
            Task sending = SendAllAsync(requests, messages, limit);
            foreach (ReadOnlyMemory<byte> message in messages)
            {
                await VerifyAsync(answers, message, limit);
            }

            await sending;
        }

        if (Random.Next(10) == 0)
        {
            // Disposing the call cancels it, and the connection stays open.
            return;
        }

        content.Complete();
        if (await Frame.ReadAsync(answers, limit) is not null)
        {
            throw new InvalidDataException("There is an answer to no message.");
        }

        string count = response.TrailingHeaders.GetValues("messages").Single();
        if (count != messages.Length.ToString(CultureInfo.InvariantCulture))
        {
            throw new InvalidDataException($"The server counted {count} messages, not {messages.Length}.");
        }
    }

    private static async Task SendAllAsync(Stream stream, ReadOnlyMemory<byte>[] messages, CancellationToken limit)
    {
        foreach (ReadOnlyMemory<byte> message in messages)
        {
            await SendAsync(stream, message, limit);
        }
    }

    private static async Task SendAsync(Stream stream, ReadOnlyMemory<byte> message, CancellationToken limit)
    {
        await stream.WriteAsync(Frame.Create(message.Span), limit);
        await stream.FlushAsync(limit);
    }

    private async Task VerifyAsync(Stream stream, ReadOnlyMemory<byte> message, CancellationToken limit)
    {
        byte[] answer = await Frame.ReadAsync(stream, limit) ?? throw new EndOfStreamException("The call ended before its last answer.");
        Payload.Verify(answer, Payload.Hash(message.Span), "an answer");
        Context.Tally.CountBytes(answer.Length);
    }
}
