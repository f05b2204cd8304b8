// Downloads over HTTPS on kernel TLS, and says who decrypted: the kernel, or another one and why.
//
//   dotnet run -- https://localhost:8443/files/name
using KernelTls;

SocketsHttpHandler handler = new()
{
    // HttpClient does not expose its connections. This filter, which changes nothing, sees each once after its handshake.
    PlaintextStreamFilter = (context, _) =>
    {
        if (context.PlaintextStream is KtlsStream stream)
        {
            Console.WriteLine($"{stream.SslProtocol} {stream.NegotiatedCipherSuite} {stream.Offload}");
        }

        return ValueTask.FromResult(context.PlaintextStream);
    },
};
using HttpClient client = new(handler.UseKernelTls());
await using Stream body = await client.GetStreamAsync(new Uri(args[0]));
byte[] buffer = new byte[64 * 1024];
long length = 0;
for (int read; (read = await body.ReadAsync(buffer)) > 0; length += read)
{
}

Console.WriteLine($"{length} bytes");
