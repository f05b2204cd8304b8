using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Serves one HTTPS connection, and authorizes a request only if it authenticates by NTLM bound to this connection: the
/// AUTHENTICATE message contains the hash of tls-server-end-point (MS-NLMP, 2.2.2.1, MsvAvChannelBindings).
/// </summary>
internal sealed class NtlmServer : IDisposable
{
    private const int TargetInfoFlag = 0x00800000;
    private const int ServerTargetFlag = 0x00020000;

    // Offsets in messages (MS-NLMP, 2.2.1 and 2.2.2.7).
    private const int NegotiateFlags = 12;
    private const int ChallengeHeader = 56;
    private const int ResponseField = 20;
    private const int ResponsePairs = 44;

    private const ushort EndOfPairs = 0;
    private const ushort ComputerName = 1;
    private const ushort DomainName = 2;
    private const ushort Timestamp = 7;
    private const ushort ChannelBindings = 10;

    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);

    public NtlmServer() => _listener.Start();

    public Uri Address => new($"https://localhost:{((IPEndPoint)_listener.LocalEndpoint).Port}/");

    /// <summary>Gets the hash that the client must send.</summary>
    public static string ExpectedHash { get; } = HashOf(
        [.. "tls-server-end-point:"u8, .. Certificates.Ecdsa.GetCertHash(HashAlgorithmName.SHA256)]);

    /// <summary>Answers requests until one has authenticated. Returns the hash that it sent, or an empty string for none.</summary>
    public async Task<string> ServeAsync(SslProtocols version)
    {
        await using SslStream stream = new(new NetworkStream(await _listener.AcceptSocketAsync().InTime("a connection"), ownsSocket: true));
        await stream.AuthenticateAsServerAsync(Handshakes.ServerOptions(version)).InTime("the handshake");
        while (true)
        {
            byte[] message = TokenIn(await ReadHeadAsync(stream).InTime("a request"));
            if (message.Length > 8 && message[8] == 3)
            {
                string hash = HashIn(message);
                await AnswerAsync(stream, hash == ExpectedHash ? "200 OK" : "403 Forbidden", "");
                return hash;
            }

            await AnswerAsync(
                stream,
                "401 Unauthorized",
                message.Length == 0 ? "WWW-Authenticate: NTLM\r\n" : $"WWW-Authenticate: NTLM {Convert.ToBase64String(ChallengeTo(message))}\r\n");
        }
    }

    public void Dispose() => _listener.Dispose();

    /// <summary>Returns the MD5 of a gss_channel_bindings_struct without addresses (RFC 4121, 4.1.1.2).</summary>
    private static string HashOf(byte[] applicationData)
    {
        byte[] bindings = new byte[20 + applicationData.Length];
        BinaryPrimitives.WriteInt32LittleEndian(bindings.AsSpan(16), applicationData.Length);
        applicationData.CopyTo(bindings, 20);
#pragma warning disable CA5351 // The protocol prescribes MD5.
        return Convert.ToHexString(MD5.HashData(bindings));
#pragma warning restore CA5351
    }

    private static string HashIn(byte[] authenticate)
    {
        ReadOnlySpan<byte> field = authenticate.AsSpan(ResponseField);
        int length = BinaryPrimitives.ReadUInt16LittleEndian(field);
        ReadOnlySpan<byte> pairs = authenticate.AsSpan(BinaryPrimitives.ReadInt32LittleEndian(field[4..]), length)[ResponsePairs..];
        while (BinaryPrimitives.ReadUInt16LittleEndian(pairs) is var name && name != EndOfPairs)
        {
            int size = BinaryPrimitives.ReadUInt16LittleEndian(pairs[2..]);
            if (name == ChannelBindings)
            {
                return Convert.ToHexString(pairs.Slice(4, size));
            }

            pairs = pairs[(4 + size)..];
        }

        return "";
    }

    private static byte[] ChallengeTo(byte[] negotiate)
    {
        byte[] target = Encoding.Unicode.GetBytes("TEST");
        byte[] time = new byte[8];
        BinaryPrimitives.WriteInt64LittleEndian(time, DateTime.UtcNow.ToFileTimeUtc());
        byte[] pairs = [.. Pair(DomainName, target), .. Pair(ComputerName, target), .. Pair(Timestamp, time), .. Pair(EndOfPairs, [])];
        byte[] message = new byte[ChallengeHeader + target.Length + pairs.Length];
        "NTLMSSP\0"u8.CopyTo(message);
        message[8] = 2;
        WriteField(12, target.Length, ChallengeHeader);
        BinaryPrimitives.WriteInt32LittleEndian(
            message.AsSpan(20),
            BinaryPrimitives.ReadInt32LittleEndian(negotiate.AsSpan(NegotiateFlags)) | TargetInfoFlag | ServerTargetFlag);
        RandomNumberGenerator.Fill(message.AsSpan(24, 8));
        WriteField(40, pairs.Length, ChallengeHeader + target.Length);
        target.CopyTo(message, ChallengeHeader);
        pairs.CopyTo(message, ChallengeHeader + target.Length);
        return message;

        void WriteField(int at, int length, int offset)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(message.AsSpan(at), (ushort)length);
            BinaryPrimitives.WriteUInt16LittleEndian(message.AsSpan(at + 2), (ushort)length);
            BinaryPrimitives.WriteInt32LittleEndian(message.AsSpan(at + 4), offset);
        }
    }

    private static byte[] Pair(ushort name, byte[] value)
    {
        byte[] pair = new byte[4 + value.Length];
        BinaryPrimitives.WriteUInt16LittleEndian(pair, name);
        BinaryPrimitives.WriteUInt16LittleEndian(pair.AsSpan(2), (ushort)value.Length);
        value.CopyTo(pair, 4);
        return pair;
    }

    private static byte[] TokenIn(string head)
    {
        const string Header = "\r\nAuthorization: NTLM ";
        int start = head.IndexOf(Header, StringComparison.Ordinal);
        return start < 0
            ? []
            : Convert.FromBase64String(head[(start + Header.Length)..head.IndexOf("\r\n", start + 2, StringComparison.Ordinal)]);
    }

    private static async Task<string> ReadHeadAsync(SslStream stream)
    {
        StringBuilder head = new();
        byte[] buffer = new byte[4096];
        while (!head.ToString().EndsWith("\r\n\r\n", StringComparison.Ordinal))
        {
            int count = await stream.ReadAsync(buffer);
            Assert.True(count > 0, $"The client has left after: {head}");
            head.Append(Encoding.ASCII.GetString(buffer, 0, count));
        }

        return head.ToString();
    }

    private static async Task AnswerAsync(SslStream stream, string status, string header) =>
        await stream.WriteAsync(Encoding.ASCII.GetBytes($"HTTP/1.1 {status}\r\nContent-Length: 0\r\n{header}\r\n"));
}
