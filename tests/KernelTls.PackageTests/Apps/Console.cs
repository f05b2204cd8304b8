// Sends "ping" to a TLS server on the port in its argument, and prints the response and the data paths of the
// connection.
using System.Globalization;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using KernelTls;

using TcpClient connection = new("127.0.0.1", int.Parse(args[0], CultureInfo.InvariantCulture));
await using KtlsStream tls = new(connection.GetStream(), false, (_, _, _, _) => true);
await tls.AuthenticateAsClientAsync(new SslClientAuthenticationOptions { TargetHost = "localhost" });
await tls.WriteAsync("ping"u8.ToArray());
byte[] answer = new byte[4];
await tls.ReadExactlyAsync(answer);
Console.WriteLine($"{Encoding.ASCII.GetString(answer)} {tls.Offload}, platform: {KtlsPlatform.Probe().NotSupportedReason}");
