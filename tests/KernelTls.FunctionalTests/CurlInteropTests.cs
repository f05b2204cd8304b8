using System.Buffers.Binary;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests curl against a KtlsStream server. ForeignPeerTests has the plain download.</summary>
public class CurlInteropTests : InteropTest
{
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_uploads_over_HTTP_1_1_with_a_certificate_of_its_own(SslProtocols version)
    {
        const int Length = 3_000_001;
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Client, directory.FullName);
        File.WriteAllBytes(directory["upload"], Pattern.Take(Length));
        using ExternalProgram curl = Start(
            listener, directory, version, "--http1.1", "--cert", certificate, "--key", key,
            "--header", "Expect:", "--upload-file", directory["upload"]);
        await using KtlsStream server = await AcceptAsync(listener, version, o =>
        {
            o.ServerCertificateContext = Certificates.RsaContext;
            o.ClientCertificateRequired = true;
        });

        Assert.Equal(Certificates.Client.GetCertHashString(), server.RemoteCertificate?.GetCertHashString());
        string request = await ReadHeaderAsync(server);
        Assert.StartsWith("PUT /upload HTTP/1.1\r\n", request, StringComparison.Ordinal);
        Assert.Contains($"\r\nContent-Length: {Length}\r\n", request, StringComparison.Ordinal);
        await Pattern.ReceiveAsync(server, Length).InTime("the upload");
        await server.WriteAsync("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere"u8.ToArray()).InTime("the answer");
        Assert.Equal("there", await curl.OutputUpToAsync("there"));
        Assert.True(await curl.ExitAsync() == 0, curl.Errors);
        AssertCounted(before, version);
    }

    /// <summary>
    /// RFC 9113, section 3.4: a client begins with 24 fixed bytes and its SETTINGS. The response is minimal HTTP/2.
    /// </summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_downloads_over_HTTP_2(SslProtocols version)
    {
        // Within the first 65,535 bytes of flow control.
        const int Length = 60_000;
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram curl = Start(
            listener, directory, version, "--http2", "--output", directory["download"], "--write-out", "HTTP %{http_version}\\n");
        await using KtlsStream server = await AcceptAsync(
            listener, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2]);

        Assert.Equal(SslApplicationProtocol.Http2, server.NegotiatedApplicationProtocol);
        byte[] preface = new byte[24];
        await server.ReadExactlyAsync(preface).InTime("the connection preface");
        Assert.Equal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Encoding.ASCII.GetString(preface));
        Frame first = await ReadFrameAsync(server);
        Assert.Equal((FrameType.Settings, 0), (first.Type, first.Flags));
        Frame request = first;
        while (request.Type != FrameType.Headers)
        {
            request = await ReadFrameAsync(server);
        }

        Assert.Equal(1, request.Stream);
        await WriteFrameAsync(server, new(FrameType.Settings, 0, 0), default);
        await WriteFrameAsync(server, new(FrameType.Settings, Frame.Acknowledge, 0), default);

        // RFC 7541, appendix A: entry 8 of the static table is ":status: 200".
        await WriteFrameAsync(server, new(FrameType.Headers, Frame.EndHeaders, 1), new byte[] { 0x88 });
        for (int sent = 0; sent < Length;)
        {
            int size = Math.Min(10_007, Length - sent);
            await WriteFrameAsync(
                server, new(FrameType.Data, sent + size == Length ? Frame.EndStream : (byte)0, 1), Pattern.Take(size, sent));
            sent += size;
        }

        Assert.Equal("HTTP 2\n", await curl.OutputUpToAsync("\n"));
        Assert.True(await curl.ExitAsync() == 0, curl.Errors);
        byte[] download = File.ReadAllBytes(directory["download"]);
        Assert.Equal(Length, download.Length);
        Pattern.AssertAt(0, download);
        AssertCounted(before, version);
    }

    internal static ExternalProgram Start(
        ForeignPeer listener, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        Curl.Start(listener.Port, directory, version, [.. more, Curl.Address(listener.Port)]);

    private static async Task<Frame> ReadFrameAsync(KtlsStream stream)
    {
        byte[] header = new byte[9];
        await stream.ReadExactlyAsync(header).InTime("a frame's header");
        int length = (header[0] << 16) | (header[1] << 8) | header[2];
        Assert.InRange(length, 0, 16_384);
        await stream.ReadExactlyAsync(new byte[length]).InTime("a frame's payload");
        return new((FrameType)header[3], header[4], BinaryPrimitives.ReadInt32BigEndian(header.AsSpan(5)));
    }

    private static async Task WriteFrameAsync(KtlsStream stream, Frame frame, ReadOnlyMemory<byte> payload)
    {
        byte[] bytes = new byte[9 + payload.Length];
        BinaryPrimitives.WriteInt32BigEndian(bytes, payload.Length << 8);
        bytes[3] = (byte)frame.Type;
        bytes[4] = frame.Flags;
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(5), frame.Stream);
        payload.CopyTo(bytes.AsMemory(9));
        await stream.WriteAsync(bytes).InTime($"writing {frame}");
    }

    private enum FrameType : byte
    {
        Data = 0,
        Headers = 1,
        Settings = 4,
    }

    private readonly record struct Frame(FrameType Type, byte Flags, int Stream)
    {
        public const byte Acknowledge = 1;
        public const byte EndStream = 1;
        public const byte EndHeaders = 4;
    }
}
