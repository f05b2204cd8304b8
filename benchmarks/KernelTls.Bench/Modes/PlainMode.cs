using System.Net.Sockets;
using KernelTls.Bench.Scenarios;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>Represents connections without TLS, the floor of all modes.</summary>
internal sealed class PlainMode : Mode
{
    public override string Name => "plain";

    public override bool HasHandshake => false;

    public override string Scheme => Uri.UriSchemeHttp;

    public override bool ResumesHttp => false;

    public override Task<Stream> ConnectAsync(Socket socket) =>
        Task.FromResult<Stream>(new NetworkStream(socket, ownsSocket: true));

    public override Task<Stream> AcceptAsync(Socket socket) => ConnectAsync(socket);

    public override Task EndSendingAsync(Stream stream)
    {
        ((NetworkStream)stream).Socket.Shutdown(SocketShutdown.Send);
        return Task.CompletedTask;
    }

    /// <summary>Sends the file with the kernel's sendfile, because this mode is the floor.</summary>
    public override ValueTask SendFileAsync(Stream stream, BenchFile file) =>
        ((NetworkStream)stream).Socket.SendFileAsync(file.Path);

    public override SocketsHttpHandler CreateHandler() => new();

    public override void ConfigureEndpoint(ListenOptions endpoint)
    {
    }

    public override void Verify(Stream stream, Socket socket)
    {
        if (stream is not NetworkStream)
        {
            throw new BenchFailedException($"plain runs on {stream.GetType().Name}");
        }
    }
}
