using System.Globalization;
using System.Security.Cryptography;
using System.Text.Json.Nodes;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests samples/KernelTls.FileServer in a browser on this machine. KERNELTLS_SERVER_CELL names the lab cell in which
/// the server runs, behind a forwarded port. Without it the server runs here too.
/// </summary>
[Trait("loop", "outer")]
public class ChromiumTests
{
    private const int Size = 5_000_001;
    private const int GuestPort = 8443;

    /// <summary>The expression that returns the page's tables once they show a connection.</summary>
    private const string Table = """
        new Promise(resolve => {
            const cells = id => [...document.querySelectorAll(`#${id} tr`)].map(row => [...row.cells].map(cell => cell.textContent));
            const look = () => cells("connections").length > 0
                ? resolve({ connections: cells("connections"), kernel: cells("kernel") })
                : setTimeout(look, 50);
            look();
        })
        """;

    private const string Protocols = """
        [...new Set(["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind)).map(entry => entry.nextHopProtocol))]
        """;

    private const string Lost = """
        new Promise(resolve => {
            const line = document.getElementById("lost");
            const look = () => line.hidden ? setTimeout(look, 50) : resolve(line.textContent);
            look();
        })
        """;

    // A machine has to boot, and .NET has to start in it.
    private static readonly TimeSpan s_start = TimeSpan.FromMinutes(5);

    private static readonly string s_cell = Environment.GetEnvironmentVariable("KERNELTLS_SERVER_CELL") ?? "";

    // The limit is for the server: in a cell it is emulated, although the browser is not.
    private static readonly TimeSpan s_limit = s_cell.Length > 0 ? TimeSpan.FromMinutes(2) : Limits.Wait;

    // An emulated server answers a thousand requests in half a minute if it has a processor to itself.
    private static readonly TimeSpan s_loadLimit = s_cell.Length > 0 ? 4 * s_limit : Load.Limit;

    [Fact]
    public async Task The_page_tells_what_became_of_its_connection_and_files_arrive()
    {
        using TemporaryDirectory directory = new();
        Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        string files = Directory.CreateDirectory(directory["files"]).FullName;
        await File.WriteAllBytesAsync(Path.Combine(files, "large"), Pattern.Take(Size));
        await File.WriteAllBytesAsync(Path.Combine(files, "small"), Pattern.Take(1_000));
        using ReservedPort port = new();
        using ExternalProgram server = s_cell.Length > 0 ? StartInCell(directory, port) : StartHere(directory, port);
        await server.OutputUpToAsync("listening on: https://", s_start);
        await using Chromium page = await Chromium.StartAsync(Certificates.Ecdsa);

        try
        {
            await page.NavigateAsync(new Uri($"https://127.0.0.1:{port}/"), s_limit);
            await UsePageAsync(page);
        }
        catch (Exception e)
        {
            server.Kill();
            using StreamReader output = new(server.Output);
            throw new InvalidOperationException($"The server printed: {await output.ReadToEndAsync().InTime("the server's output")}", e);
        }

        server.Kill();
        Assert.Equal("The server does not answer.", $"{await page.EvaluateAsync(Lost, s_limit)}");
    }

    private static async Task UsePageAsync(Chromium page)
    {
        AssertOffloaded(await page.EvaluateAsync(Table, s_limit));
        Assert.Equal(Sha256(Size), $"{await page.EvaluateAsync(Digest("/files/large"), s_limit)}");
        Assert.Equal(Sha256(1_000), $"{await page.EvaluateAsync(Digest("/files/small"), s_limit)}");
        Assert.Equal(Load.Requests, (int)await page.EvaluateAsync(CountEqual("/files/small", Load.Requests), s_loadLimit));
        Assert.Equal(["h2"], (await page.EvaluateAsync(Protocols)).AsArray().Select(p => $"{p}"));

        // Its own connection is still open: none failed, and no unused one was added.
        AssertOffloaded(await page.EvaluateAsync(Table, s_limit));
    }

    private static string Digest(string path) => $$"""
        (async () => {
            const bytes = await (await fetch("{{path}}", { cache: "no-store" })).arrayBuffer();
            const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
            return `${bytes.byteLength} ${Array.from(digest, b => b.toString(16).padStart(2, "0")).join("")}`;
        })()
        """;

    /// <summary>
    /// Returns the expression that sends this many requests, twenty at a time, and counts the responses that equal the
    /// first one.
    /// </summary>
    private static string CountEqual(string path, int count) => $$"""
        (async () => {
            const get = async () => {
                const response = await fetch("{{path}}", { cache: "no-store" });
                const bytes = new Uint8Array(await response.arrayBuffer());
                return response.ok ? bytes.join() : "failed";
            };
            const first = await get();
            let left = {{count}} - 1, equal = 1;
            const work = async () => {
                while (left-- > 0) {
                    if (await get() === first) equal++;
                }
            };
            await Promise.all(Array.from({ length: 20 }, work));
            return equal;
        })()
        """;

    private static string Sha256(int count) => $"{count} {Convert.ToHexStringLower(SHA256.HashData(Pattern.Take(count)))}";

    private static void AssertOffloaded(JsonNode page)
    {
        bool isKernel = s_cell.Length > 0 || KtlsPlatform.Probe().IsSupported;
        string path = isKernel ? "Kernel" : $"OpenSsl: {KtlsPlatform.Probe().NotSupportedReason}";
        foreach (JsonNode? row in page["connections"]!.AsArray())
        {
            // Connection, Client, Protocol, Cipher, Sending, Receiving.
            Assert.Equal(["Tls13", path, path], (string[])[$"{row![2]}", $"{row[4]}", $"{row[5]}"]);
        }

        if (isKernel)
        {
            Dictionary<string, long> kernel = page["kernel"]!.AsArray().ToDictionary(
                row => $"{row![0]}", row => long.Parse($"{row![1]}", CultureInfo.InvariantCulture));
            Assert.InRange(kernel["TlsCurrTxSw"], 1, long.MaxValue);
            Assert.InRange(kernel["TlsCurrRxSw"], 1, long.MaxValue);
            Assert.InRange(kernel["TlsTxSw"], 1, long.MaxValue);
            Assert.InRange(kernel["TlsRxSw"], 1, long.MaxValue);
            Assert.Equal(0, kernel["TlsDecryptError"]);
        }
    }

    private static ExternalProgram StartHere(TemporaryDirectory directory, ReservedPort port) => ExternalProgram.Start(
        "env",
        null,
        [.. KtlsPlatform.Probe().IsSupported ? [] : (string[])[$"{Application.DirectVariable}=1"],
        "dotnet", Application.PathOf("KernelTls.FileServer"), .. Options(directory.FullName, "127.0.0.1", $"{port}")]);

    private static ExternalProgram StartInCell(TemporaryDirectory directory, ReservedPort port)
    {
        string artifacts = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", ".."));
        return ExternalProgram.Start(
            Path.Combine(artifacts, "..", "eng", "lab"),
            null,
            [s_cell, "--share", $"{artifacts}/bin:/repo", "--share", $"{directory.FullName}:/srv", "--forward", $"{port}:{GuestPort}",
            "--", "dotnet", "KernelTls.FileServer/release/KernelTls.FileServer.dll", .. Options("/srv", "0.0.0.0", $"{GuestPort}")]);
    }

    /// <summary>Returns the options: no log of the requests, but of the handshakes that fail or take too long.</summary>
    private static string[] Options(string directory, string address, string port) =>
        ["--directory", $"{directory}/files", "--address", address, "--port", port, "--Logging:LogLevel:Microsoft.AspNetCore", "Warning",
        "--Logging:LogLevel:Microsoft.AspNetCore.Server.Kestrel.Https", "Debug",
        "--Kestrel:Certificates:Default:Path", $"{directory}/certificate.pem",
        "--Kestrel:Certificates:Default:KeyPath", $"{directory}/key.pem"];
}
