using System.Buffers.Binary;
using System.Net.Security;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Implements the part of the Tabular Data Stream protocol (MS-TDS, version 8.0: TLS before everything else) that a client needs to log in and
/// to run two commands, because the distribution has no such server.
/// </summary>
/// <remarks>
/// The command <c>download N</c> returns N bytes of the pattern. Any other command returns the SHA-256 of its text.
/// </remarks>
internal sealed class SqlServerStub : TlsStub
{
    public const string Download = "download ";

    private const byte Batch = 0x01;
    private const byte TabularResult = 0x04;
    private const byte Login = 0x10;
    private const byte PreLogin = 0x12;
    private const byte EndOfMessage = 0x01;

    private const int HeaderSize = 8;
    private const int PacketSize = 4096;

    protected override SslServerAuthenticationOptions Options => new()
    {
        ServerCertificate = Certificates.Ecdsa,
        ApplicationProtocols = [new SslApplicationProtocol("tds/8.0")],
    };

    protected override async Task<bool> AnswerAsync(SslStream stream)
    {
        byte[] header = new byte[HeaderSize];
        using MemoryStream message = new();
        do
        {
            if (await stream.ReadAtLeastAsync(header, HeaderSize, throwOnEndOfStream: false) < HeaderSize)
            {
                return false;
            }

            byte[] body = new byte[BinaryPrimitives.ReadUInt16BigEndian(header.AsSpan(2)) - HeaderSize];
            await stream.ReadExactlyAsync(body);
            message.Write(body);
        }
        while ((header[1] & EndOfMessage) == 0);

        byte[] answer = header[0] switch
        {
            PreLogin => AnswerPreLogin(),
            Login => [.. AcknowledgeLogin(), .. Done()],
            Batch => [.. Execute(ReadCommand(message.ToArray())), .. Done()],
            _ => throw new InvalidOperationException($"The client sent a message of type {header[0]}."),
        };
        await stream.WriteAsync(Frame(answer));
        return true;
    }

    /// <summary>Returns version, encryption and MARS of the server, each with its offset and length in front.</summary>
    private static byte[] AnswerPreLogin() =>
    [
        0, 0, 16, 0, 6,
        1, 0, 22, 0, 1,
        4, 0, 23, 0, 1,
        0xff,
        16, 0, 0, 0, 0, 0,
        1,
        0,
    ];

    /// <summary>Returns the token LOGINACK: SQL, version 8.0 of the protocol, the name and version of the program.</summary>
    private static byte[] AcknowledgeLogin()
    {
        byte[] name = Encoding.Unicode.GetBytes("stub");
        byte[] content = [1, 8, 0, 0, 0, (byte)(name.Length / 2), .. name, 16, 0, 0, 0];
        return [0xad, (byte)content.Length, 0, .. content];
    }

    /// <summary>Returns the token DONE of a command without a count.</summary>
    private static byte[] Done() => [0xfd, .. new byte[12]];

    /// <summary>Returns the text behind the headers of a batch.</summary>
    private static string ReadCommand(byte[] message) =>
        Encoding.Unicode.GetString(message.AsSpan(BinaryPrimitives.ReadInt32LittleEndian(message)));

    /// <summary>Returns the tokens COLMETADATA and ROW of one value of the type varbinary(max), which is sent as one chunk.</summary>
    private static byte[] Execute(string command)
    {
        byte[] value = command.StartsWith(Download, StringComparison.Ordinal)
            ? Pattern.Take(int.Parse(command.AsSpan(Download.Length)))
            : SHA256.HashData(Encoding.Unicode.GetBytes(command));
        byte[] column = [0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0xa5, 0xff, 0xff, 0, 0xd1];
        byte[] lengths = new byte[12];
        BinaryPrimitives.WriteInt64LittleEndian(lengths, value.Length);
        BinaryPrimitives.WriteInt32LittleEndian(lengths.AsSpan(8), value.Length);
        return [.. column, .. lengths, .. value, 0, 0, 0, 0];
    }

    private static byte[] Frame(byte[] message)
    {
        const int Most = PacketSize - HeaderSize;
        using MemoryStream packets = new();
        int count = (message.Length + Most - 1) / Most;
        for (int i = 0; i < count; i++)
        {
            byte[] body = message.AsSpan(i * Most, Math.Min(Most, message.Length - (i * Most))).ToArray();
            byte[] header = [TabularResult, (byte)(i == count - 1 ? EndOfMessage : 0), 0, 0, 0, 0, (byte)(i + 1), 0];
            BinaryPrimitives.WriteUInt16BigEndian(header.AsSpan(2), (ushort)(HeaderSize + body.Length));
            packets.Write(header);
            packets.Write(body);
        }

        return packets.ToArray();
    }
}
