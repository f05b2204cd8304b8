using System.Net.WebSockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Runs a page in headless Chromium, by its DevTools protocol. The profile is deleted afterwards.</summary>
internal sealed partial class Chromium : IAsyncDisposable
{
    private readonly TemporaryDirectory _profile;
    private readonly ExternalProgram _program;
    private readonly ClientWebSocket _socket = new();
    private string? _session;
    private int _last;

    private Chromium(TemporaryDirectory profile, ExternalProgram program) => (_profile, _program) = (profile, program);

    /// <summary>Starts Chromium.</summary>
    /// <param name="trusted">The only certificate that it accepts, by its key, regardless of the issuer.</param>
    public static async Task<Chromium> StartAsync(X509Certificate2 trusted)
    {
        TemporaryDirectory profile = new();
        string key = Convert.ToBase64String(SHA256.HashData(trusted.PublicKey.ExportSubjectPublicKeyInfo()));

        // Its sandbox does not work for root.
        Chromium chromium = new(profile, ExternalProgram.Start(
            "chromium-headless-shell", profile.FullName, "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--no-proxy-server", "--remote-debugging-port=0", $"--user-data-dir={profile.FullName}",
            $"--ignore-certificate-errors-spki-list={key}"));
        Match listening = await chromium._program.ErrorsMatch(DevTools());
        chromium._socket.Options.Proxy = null;
        await chromium._socket.ConnectAsync(new Uri(listening.Groups[1].Value), CancellationToken.None).InTime("Chromium's DevTools");
        JsonNode target = await chromium.CallAsync("Target.createTarget", new { url = "about:blank" });
        JsonNode session = await chromium.CallAsync(
            "Target.attachToTarget", new { targetId = target["targetId"]!.GetValue<string>(), flatten = true });
        chromium._session = session["sessionId"]!.GetValue<string>();
        return chromium;
    }

    /// <summary>Navigates to an address. The document may still be loading.</summary>
    /// <param name="limit">The limit, if the usual one is too short for the server.</param>
    public async Task NavigateAsync(Uri address, TimeSpan? limit = null)
    {
        JsonNode answer = await CallAsync("Page.navigate", new { url = address.AbsoluteUri }, limit);
        Assert.True(answer["errorText"] is null, $"{address}: {answer["errorText"]}");
    }

    /// <summary>Returns the value of a JavaScript expression in the page. Waits for a promise.</summary>
    public async Task<JsonNode> EvaluateAsync(string expression, TimeSpan? limit = null)
    {
        JsonNode answer = await CallAsync("Runtime.evaluate", new { expression, awaitPromise = true, returnByValue = true }, limit);
        Assert.True(answer["exceptionDetails"] is null, $"{expression}: {answer["exceptionDetails"]?.ToJsonString()}");
        return answer["result"]!["value"]!;
    }

    public async ValueTask DisposeAsync()
    {
        if (_session is not null)
        {
            // It may exit before it answers.
            _session = null;
            await SendAsync("Browser.close", new { });
            await _program.ExitAsync();
        }

        _socket.Dispose();
        _program.Dispose();
        _profile.Dispose();
    }

    /// <summary>Makes a call, one at a time. Messages before its answer are events.</summary>
    private async Task<JsonNode> CallAsync(string method, object parameters, TimeSpan? limit = null)
    {
        int id = await SendAsync(method, parameters);
        while (true)
        {
            JsonNode message = await ReceiveAsync().Within(limit ?? Limits.Wait, $"{method}; Chromium says: {_program.Errors}");
            if (message["id"]?.GetValue<int>() == id)
            {
                Assert.True(message["error"] is null, $"{method}: {message["error"]}");
                return message["result"]!;
            }
        }
    }

    private async Task<int> SendAsync(string method, object parameters)
    {
        Dictionary<string, object> call = new() { ["id"] = ++_last, ["method"] = method, ["params"] = parameters };
        if (_session is not null)
        {
            call["sessionId"] = _session;
        }

        await _socket.SendAsync(
            JsonSerializer.SerializeToUtf8Bytes(call), WebSocketMessageType.Text, endOfMessage: true, CancellationToken.None).InTime(method);
        return _last;
    }

    private async Task<JsonNode> ReceiveAsync()
    {
        using MemoryStream message = new();
        byte[] buffer = new byte[16 * 1024];
        for (bool ended = false; !ended;)
        {
            WebSocketReceiveResult part = await _socket.ReceiveAsync(buffer, CancellationToken.None);
            Assert.Equal(WebSocketMessageType.Text, part.MessageType);
            message.Write(buffer, 0, part.Count);
            ended = part.EndOfMessage;
        }

        return JsonNode.Parse(message.ToArray())!;
    }

    [GeneratedRegex(@"DevTools listening on (ws://\S+)\s")]
    private static partial Regex DevTools();
}
