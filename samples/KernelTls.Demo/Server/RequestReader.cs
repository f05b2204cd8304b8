namespace KernelTls.Demo.Server;

/// <summary>Cuts the bytes of a connection into request heads; what a client sends ahead is kept for the next one.</summary>
internal sealed class RequestReader
{
    private const int HeadLimit = 8 * 1024;
    private readonly Stream _stream;
    private readonly byte[] _buffer = new byte[HeadLimit];
    private int _filled;

    public RequestReader(Stream stream) => _stream = stream;

    /// <summary>Part of a request has arrived.</summary>
    public bool IsInRequest => _filled > 0;

    /// <summary>Returns the next request, or <see langword="null"/> where the client has ended the connection after the last.</summary>
    /// <exception cref="BadRequestException">The head is malformed, too long, or ends half-way.</exception>
    public async Task<RequestHead?> ReadAsync(CancellationToken cancellationToken)
    {
        while (true)
        {
            DropEmptyLines();
            int end = _buffer.AsSpan(0, _filled).IndexOf("\r\n\r\n"u8);
            if (end >= 0)
            {
                RequestHead request = RequestParser.Parse(_buffer.AsSpan(0, end));
                Consume(end + 4);
                return request;
            }

            if (_filled == _buffer.Length)
            {
                throw new BadRequestException(431, $"more than {HeadLimit} bytes of header");
            }

            int read = await _stream.ReadAsync(_buffer.AsMemory(_filled), cancellationToken);
            if (read == 0)
            {
                return _filled == 0 ? null : throw new BadRequestException(400, "the request ends half-way");
            }

            _filled += read;
        }
    }

    /// <summary>An empty line before a request is ignored (RFC 9112, section 2.2).</summary>
    private void DropEmptyLines()
    {
        while (_buffer.AsSpan(0, _filled).StartsWith("\r\n"u8))
        {
            Consume(2);
        }
    }

    private void Consume(int count)
    {
        _filled -= count;
        _buffer.AsSpan(count, _filled).CopyTo(_buffer);
    }
}
