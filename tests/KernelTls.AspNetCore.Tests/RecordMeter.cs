using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// The stream below a client's SslStream: records the length of each TLS record that the server sends (RFC 8446,
/// section 5.1).
/// </summary>
internal sealed class RecordMeter(Socket socket) : NetworkStream(socket, ownsSocket: true)
{
    private readonly RecordLengths _records = new();

    /// <summary>Gets the lengths of the records begun so far, without their headers.</summary>
    public IReadOnlyList<int> Records => _records.Begun;

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int read = await base.ReadAsync(buffer, cancellationToken);
        _records.Note(buffer.Span[..read]);
        return read;
    }
}
