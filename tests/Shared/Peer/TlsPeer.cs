using System.Buffers.Binary;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;

namespace KernelTls.Tests;

/// <summary>
/// Implements the other end of a TLS connection for tests. It has the keys and can send any record, authentic or not,
/// at any time, during and after the handshake. It validates nothing, and it reads its peer's records one by one.
/// </summary>
internal sealed partial class TlsPeer : IDisposable
{
    private const int HeaderSize = 5;

    private readonly Socket _socket;
    private readonly bool _isServer;
    private readonly string? _protocol;
    private readonly byte[] _buffer = new byte[64 * 1024];
    private readonly List<byte> _messages = [];
    private readonly List<byte> _data = [];
    private readonly List<string> _alerts = [];
    private readonly Lock _lock = new();
    private TaskCompletionSource _progress = NewSource();
    private RecordKeys? _write;
    private RecordKeys? _read;
    private RecordKeys? _nextRead;
    private int _start;
    private int _end;
    private bool _closed;
    private bool _watching;

    /// <summary>Creates a peer.</summary>
    /// <param name="socket">The connected socket, which the caller keeps.</param>
    /// <param name="version">TLS 1.2 or TLS 1.3.</param>
    /// <param name="isServer">Whether this end is the server.</param>
    /// <param name="protocol">The ALPN protocol that the server chooses or the client offers.</param>
    public TlsPeer(Socket socket, SslProtocols version, bool isServer, string? protocol = null)
    {
        (_socket, _isServer, _protocol) = (socket, isServer, protocol);
        IsTls13 = version == SslProtocols.Tls13;
    }

    public bool IsTls13 { get; }

    /// <summary>Gets the callback that decides before each record of the handshake.</summary>
    public Func<TlsPeer, PeerStep, Task<PeerChoice>>? Meddle { get; init; }

    /// <summary>Gets a task that completes with how the connection ended. Call <see cref="Watch"/> first.</summary>
    public Task<string> Ended { get; private set; } = Task.FromResult("");

    /// <summary>Gets a value that indicates whether records must be protected to be authentic.</summary>
    public bool IsProtected => _write is not null;

    /// <summary>
    /// Gets the alerts received, except close_notify (RFC 8446, section 6): a fatal one by its name, a warning marked
    /// as such.
    /// </summary>
    public string[] Alerts
    {
        get
        {
            lock (_lock)
            {
                return [.. _alerts];
            }
        }
    }

    /// <summary>Returns a record protected with the sending keys, or unprotected if there are none yet.</summary>
    public byte[] Seal(byte type, ReadOnlySpan<byte> content, int padding = 0, byte? outerType = null) =>
        _write?.Seal(type, content, padding, outerType) ?? Plain(type, content);

    /// <summary>Returns, for TLS 1.3, an authentic record without a content type.</summary>
    public byte[] SealZeros(int length) => _write!.SealZeros(length);

    /// <summary>Returns an unprotected record.</summary>
    public static byte[] Plain(byte type, ReadOnlySpan<byte> content) =>
        [type, 3, 3, (byte)(content.Length >> 8), (byte)content.Length, .. content];

    /// <summary>Changes the keys of later records (RFC 8446, section 4.6.3).</summary>
    public void ChangeKeys()
    {
        RecordKeys old = _write!;
        _write = old.Next();
        old.Dispose();
    }

    public async Task SendAsync(ReadOnlyMemory<byte> bytes)
    {
        while (!bytes.IsEmpty)
        {
            bytes = bytes[await _socket.SendAsync(bytes)..];
        }
    }

    /// <summary>Resets the connection, or closes this half of it.</summary>
    public void End(bool reset)
    {
        if (reset)
        {
            _socket.LingerState = new LingerOption(true, 0);
            _socket.Dispose();
        }
        else
        {
            _socket.Shutdown(SocketShutdown.Send);
        }
    }

    /// <summary>Closes this half of the connection, unless the other end has reset it.</summary>
    public void TryEnd()
    {
        try
        {
            End(reset: false);
        }
        catch (SocketException)
        {
            // The other end has reset the connection.
        }
    }

    /// <summary>Begins to receive until the end.</summary>
    public void Watch()
    {
        _watching = true;
        TakeKeyUpdates();
        Ended = WatchAsync();
    }

    /// <summary>Returns the data received as soon as it is enough, or at the end of the connection.</summary>
    public async Task<byte[]> UntilAsync(Func<byte[], bool> enough)
    {
        while (true)
        {
            Task progress;
            lock (_lock)
            {
                byte[] data = [.. _data];
                if (_closed || enough(data))
                {
                    return data;
                }

                progress = _progress.Task;
            }

            await progress;
        }
    }

    public void Dispose()
    {
        _write?.Dispose();
        _read?.Dispose();
        _nextRead?.Dispose();
    }

    private static TaskCompletionSource NewSource() => new(TaskCreationOptions.RunContinuationsAsynchronously);

    private async Task<string> WatchAsync()
    {
        string end = "FIN";
        try
        {
            while (await ReadRecordAsync() is { } record)
            {
                Take(record);
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            end = "RST";
        }

        lock (_lock)
        {
            _closed = true;
        }

        Progress();
        return end;
    }

    /// <summary>Reads the next record, or returns <see langword="null"/> at the end.</summary>
    private async Task<byte[]?> ReadRecordAsync()
    {
        while (true)
        {
            int size = _end - _start;
            if (size >= HeaderSize)
            {
                int length = HeaderSize + BinaryPrimitives.ReadUInt16BigEndian(_buffer.AsSpan(_start + 3));
                if (size >= length)
                {
                    byte[] record = _buffer[_start..(_start + length)];
                    _start += length;
                    return record;
                }
            }

            _buffer.AsSpan(_start, size).CopyTo(_buffer);
            (_start, _end) = (0, size);
            int read = await _socket.ReceiveAsync(_buffer.AsMemory(_end));
            if (read == 0)
            {
                return null;
            }

            _end += read;
        }
    }

    /// <summary>Opens a record and stores its content.</summary>
    private void Take(byte[] record)
    {
        (byte type, byte[] content) = Open(record);
        lock (_lock)
        {
            switch (type)
            {
                case RecordType.Alert when content is [1, 0]:
                    break;
                case RecordType.Alert:
                    _alerts.Add(content is [2, var description] ? AlertName.Of(description) : $"warning {AlertName.Of(content[^1])}");
                    break;
                case RecordType.Handshake:
                    _messages.AddRange(content);
                    break;
                case RecordType.ApplicationData:
                    _data.AddRange(content);
                    break;
                case RecordType.ChangeCipherSpec:
                    break;
                default:
                    _alerts.Add($"a record that is not authentic, of type {record[0]}");
                    break;
            }
        }

        if (_watching)
        {
            TakeKeyUpdates();
        }

        Progress();
    }

    private (byte Type, byte[] Content) Open(byte[] record)
    {
        byte[] body = record[HeaderSize..];
        if (record[0] == RecordType.ChangeCipherSpec)
        {
            _read = _nextRead ?? _read;
            _nextRead = null;
            return (RecordType.ChangeCipherSpec, body);
        }

        if (_read is null || (record[0] == RecordType.Alert && body.Length == 2))
        {
            return (record[0], body);
        }

        try
        {
            return _read.Open(record);
        }
        catch (CryptographicException)
        {
            return (0, []);
        }
    }

    private void Progress()
    {
        TaskCompletionSource progress;
        lock (_lock)
        {
            (progress, _progress) = (_progress, NewSource());
        }

        progress.TrySetResult();
    }
}
