using System.Net;
using System.Net.WebSockets;
using System.Reflection;
using KernelTls.Tests;
using KernelTls.Weaving;

namespace KernelTls.UnitTests;

/// <summary>Tests what woven calls of ClientWebSocket connect through.</summary>
public class WebSocketInvokersTests
{
    private static readonly Uri s_secure = new("wss://localhost/");

    /// <summary>ClientWebSocket refuses an invoker beside these options.</summary>
    public static TheoryData<string> OptionsOfAHandler =>
        ["UseDefaultCredentials", "Credentials", "Cookies", "RemoteCertificateValidationCallback", "ClientCertificates", "Proxy"];

    [Theory]
    [MemberData(nameof(OptionsOfAHandler))]
    public async Task ClientWebSocket_connects_itself_with_an_option_that_forbids_an_invoker(string option)
    {
        using ClientWebSocket socket = new();
        ClientWebSocketOptions options = socket.Options;
        switch (option)
        {
            case "UseDefaultCredentials": options.UseDefaultCredentials = true; break;
            case "Credentials": options.Credentials = new NetworkCredential("user", "password"); break;
            case "Cookies": options.Cookies = new CookieContainer(); break;
            case "RemoteCertificateValidationCallback": options.RemoteCertificateValidationCallback = (_, _, _, _) => true; break;
            case "ClientCertificates": options.ClientCertificates = [Certificates.Client]; break;
            default: options.Proxy = new WebProxy("http://127.0.0.1:1/"); break;
        }

        Assert.Null(WebSocketInvokers.Find(options, s_secure));
        using HttpMessageInvoker invoker = new(new SocketsHttpHandler());
        await Assert.ThrowsAsync<ArgumentException>(() => socket.ConnectAsync(s_secure, invoker, CancellationToken.None));
    }

    [Theory]
    [InlineData("ws://localhost/")]
    [InlineData("https://localhost/")]
    [InlineData("localhost")]
    [InlineData(null)]
    public void ClientWebSocket_connects_itself_without_an_address_of_wss(string? address)
    {
        using ClientWebSocket socket = new();

        Assert.Null(WebSocketInvokers.Find(socket.Options, address is null ? null : new Uri(address, UriKind.RelativeOrAbsolute)));
    }

    /// <summary>The handler that ClientWebSocket makes for the same options is a private part of .NET.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Its_handler_is_set_as_the_one_of_ClientWebSocket(bool hasProxy)
    {
        using ClientWebSocket socket = new();
        socket.Options.SetRequestHeader("X-Some", "header");
        socket.Options.AddSubProtocol("some");
        socket.Options.KeepAliveInterval = TimeSpan.FromSeconds(1);
        if (!hasProxy)
        {
            socket.Options.Proxy = null;
        }

        HttpMessageInvoker woven = WebSocketInvokers.Find(socket.Options, s_secure)!;
        MethodInfo setUp = typeof(ClientWebSocket).Assembly.GetType("System.Net.WebSockets.WebSocketHandle", throwOnError: true)!
            .GetMethod("SetupInvoker", BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)!;
        object?[] arguments = [socket.Options, false];
        HttpMessageInvoker stock = (HttpMessageInvoker)setUp.Invoke(setUp.IsStatic ? null : Activator.CreateInstance(setUp.DeclaringType!), arguments)!;

        Assert.Same(woven, WebSocketInvokers.Find(socket.Options, s_secure));
        Assert.Equal(Settings(stock), Settings(woven));
        Assert.Contains($"UseProxy: {hasProxy}", Settings(woven));
    }

    private static string[] Settings(HttpMessageInvoker invoker)
    {
        object handler = typeof(HttpMessageInvoker).GetField("_handler", BindingFlags.Instance | BindingFlags.NonPublic)!.GetValue(invoker)!;
        return [.. Assert.IsType<SocketsHttpHandler>(handler).GetType().GetProperties(BindingFlags.Instance | BindingFlags.Public)
            .Select(p => $"{p.Name}: {p.GetValue(handler)}")];
    }
}
