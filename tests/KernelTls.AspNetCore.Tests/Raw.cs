using System.Net.Security;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Sends and reads raw HTTP/1.</summary>
internal static class Raw
{
    public static Task SendRequestAsync(SslStream client, string path, bool close = false) => client.WriteAsync(Encoding.ASCII.GetBytes(
        $"GET {path} HTTP/1.1\r\nHost: localhost\r\n{(close ? "Connection: close\r\n" : "")}\r\n")).InTime();

    /// <summary>Reads up to and including the empty line, byte by byte.</summary>
    public static async Task<string> ReadHeadAsync(SslStream client)
    {
        StringBuilder head = new();
        byte[] one = new byte[1];
        for (int last = 0; last != 0x0D0A0D0A;)
        {
            Assert.Equal(1, await client.ReadAsync(one).InTime("the head of the answer"));
            head.Append((char)one[0]);
            last = (last << 8) | one[0];
        }

        return head.ToString();
    }

    /// <summary>Sends a request and receives its response of a thousand bytes.</summary>
    public static async Task ExchangeAsync(SslStream client)
    {
        await SendRequestAsync(client, "/bytes/1000");
        await ReadHeadAsync(client);
        await Pattern.ReceiveAsync(client, 1000).InTime();
    }
}
