using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>An HTTP proxy that supports only CONNECT.</summary>
internal sealed class ConnectProxy : IAsyncDisposable
{
    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);
    private readonly CancellationTokenSource _stop = new();
    private readonly Task _serving;
    private int _tunnels;

    public ConnectProxy()
    {
        _listener.Start();
        _serving = ServeAsync();
    }

    public Uri Address => new($"http://127.0.0.1:{((IPEndPoint)_listener.LocalEndpoint).Port}");

    public int Tunnels => _tunnels;

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        _listener.Stop();
        await _serving.InTime("the proxy to end");
        _stop.Dispose();
    }

    private async Task ServeAsync()
    {
        List<Task> tunnels = [];
        try
        {
            while (true)
            {
                tunnels.Add(TunnelAsync(await _listener.AcceptTcpClientAsync(_stop.Token)));
            }
        }
        catch (OperationCanceledException)
        {
            await Task.WhenAll(tunnels);
        }
    }

    private async Task TunnelAsync(TcpClient client)
    {
        using TcpClient near = client;
        using TcpClient far = new();
        try
        {
            NetworkStream stream = near.GetStream();
            StringBuilder request = new();
            byte[] one = new byte[1];
            while (!request.ToString().EndsWith("\r\n\r\n", StringComparison.Ordinal))
            {
                await stream.ReadExactlyAsync(one, _stop.Token);
                request.Append((char)one[0]);
            }

            string[] words = request.ToString().Split(' ');
            Assert.Equal("CONNECT", words[0]);
            await far.ConnectAsync(IPAddress.Loopback, int.Parse(words[1].Split(':')[^1], CultureInfo.InvariantCulture), _stop.Token);
            Interlocked.Increment(ref _tunnels);
            await stream.WriteAsync("HTTP/1.1 200 Connected\r\n\r\n"u8.ToArray(), _stop.Token);
            await Task.WhenAny(stream.CopyToAsync(far.GetStream(), _stop.Token), far.GetStream().CopyToAsync(stream, _stop.Token));
        }
        catch (Exception e) when (e is IOException or OperationCanceledException)
        {
            // The tunnel has ended, at either end.
            near.Close();
        }
    }
}
