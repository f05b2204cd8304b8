using System.Buffers;
using System.Text;

namespace KernelTls.Demo.Server;

/// <summary>Sends responses. A client that takes nothing for a minute ends the connection.</summary>
internal sealed class FileResponder
{
    private const int ChunkSize = 256 * 1024;
    private static readonly TimeSpan s_stallLimit = TimeSpan.FromSeconds(60);

    private readonly Stream _stream;
    private readonly PublishedFile _file;
    private readonly CancellationToken _aborted;

    public FileResponder(Stream stream, PublishedFile file, CancellationToken aborted)
    {
        _stream = stream;
        _file = file;
        _aborted = aborted;
    }

    /// <summary>Answers one request; <paramref name="keepAlive"/> is what the response says about the connection.</summary>
    public Task AnswerAsync(RequestHead request, bool keepAlive) => (request.Method, request.Path) switch
    {
        ("GET" or "HEAD", _) when request.HasBody => SendErrorAsync(400, "GET and HEAD have no body here", keepAlive: false, request.Method),
        ("GET" or "HEAD", FileServer.Path) => SendFileAsync(request.Method, keepAlive),
        ("GET" or "HEAD", _) => SendErrorAsync(404, $"there is {FileServer.Path} here", keepAlive, request.Method),
        _ => SendErrorAsync(405, "this server knows GET and HEAD", keepAlive, request.Method),
    };

    public Task SendErrorAsync(int status, string message, bool keepAlive, string method = "GET")
    {
        byte[] body = Encoding.ASCII.GetBytes($"{status} {ResponseHead.PhraseOf(status)}: {message}\n");
        byte[] head = ResponseHead.Create(status, body.Length, "text/plain; charset=us-ascii", keepAlive);
        return WriteAsync(method == "HEAD" ? head : [.. head, .. body]);
    }

    /// <summary>The head goes out with the first bytes of the file, in one write.</summary>
    private async Task SendFileAsync(string method, bool keepAlive)
    {
        byte[] head = ResponseHead.Create(200, _file.Length, "application/octet-stream", keepAlive);
        if (method == "HEAD")
        {
            await WriteAsync(head);
            return;
        }

        byte[] buffer = ArrayPool<byte>.Shared.Rent(ChunkSize);
        try
        {
            head.CopyTo(buffer, 0);
            int used = head.Length;
            long offset = 0;
            do
            {
                int wanted = (int)Math.Min(buffer.Length - used, _file.Length - offset);
                int read = await RandomAccess.ReadAsync(_file.Handle, buffer.AsMemory(used, wanted), offset, _aborted);
                if (read == 0 && wanted > 0)
                {
                    throw new IOException($"{_file.Path} became shorter while it was served");
                }

                await WriteAsync(buffer.AsMemory(0, used + read));
                offset += read;
                used = 0;
            }
            while (offset < _file.Length);
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private async Task WriteAsync(ReadOnlyMemory<byte> data)
    {
        using CancellationTokenSource stalled = CancellationTokenSource.CreateLinkedTokenSource(_aborted);
        stalled.CancelAfter(s_stallLimit);
        try
        {
            await _stream.WriteAsync(data, stalled.Token);
        }
        catch (OperationCanceledException) when (!_aborted.IsCancellationRequested)
        {
            throw new IOException($"the client took nothing for {s_stallLimit.TotalSeconds} s");
        }
    }
}
