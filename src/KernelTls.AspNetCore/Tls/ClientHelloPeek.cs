using System.Net.Sockets;
using KernelTls.Handshake;
using KernelTls.IO;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Peeks at the record with the ClientHello and leaves it in the socket, so that either engine can perform the
/// handshake.
/// </summary>
internal static class ClientHelloPeek
{
    // RFC 8446, sections 4 and 5.1.
    private const byte HandshakeRecord = 22;
    private const byte ClientHello = 1;
    private const int HeaderLength = 5;

    /// <summary>
    /// Returns the record with its header, or an empty array if the client sends something else or sends no more. The
    /// handshake then reports what is wrong.
    /// </summary>
    /// <exception cref="IOException">The connection failed.</exception>
    public static async Task<byte[]> ReadAsync(Socket socket, CancellationToken cancellationToken)
    {
        try
        {
            byte[] record = await FirstRecord.WaitAsync(
                new SocketReceiver(socket), keepsRecord: true, cancellationToken).ConfigureAwait(false);
            return record.Length > HeaderLength && record[0] == HandshakeRecord && record[HeaderLength] == ClientHello ? record : [];
        }
        catch (SocketException e)
        {
            throw new IOException("The connection failed before the ClientHello was received.", e);
        }
    }
}
