using System.Globalization;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Follows README.md to the letter, from a template of <c>dotnet new</c> to a request over https and the line of the log that says what the
/// endpoint uses.
/// </summary>
[Trait("loop", "outer")]
public sealed class QuickStartTests(Workshop workshop) : IDisposable
{
    private const string Address = "https://localhost:8443";

    private static readonly TimeSpan s_limit = TimeSpan.FromMinutes(3);

    private readonly TemporaryDirectory _home = new();
    private readonly ReservedPort _port = new();

    public void Dispose()
    {
        _port.Dispose();
        _home.Dispose();
    }

    [Theory]
    [InlineData("web")]
    [InlineData("webapi")]
    [InlineData("webapp")]
    [InlineData("mvc")]
    [InlineData("blazor")]
    [InlineData("grpc")]
    public async Task Without_code(string template) => await FollowAsync(await workshop.CreateAsync(template));

    [Fact]
    public async Task With_the_slim_builder()
    {
        string project = await workshop.CreateAsync("webapiaot");
        Insert(Path.Combine(project, "Program.cs"), "CreateSlimBuilder(args);\n", Readme.BlockWith("UseKestrelHttpsConfiguration"));

        await FollowAsync(project);
    }

    /// <summary>A worker has a client, and no server: it makes a request, and the library is loaded.</summary>
    [Fact]
    public async Task A_worker()
    {
        string project = await workshop.CreateAsync("worker");
        await RunAsync(project, "dotnet add package KernelTls");
        Insert(
            Path.Combine(project, "Worker.cs"),
            "ExecuteAsync(CancellationToken stoppingToken)\n    {\n",
            [.. Readme.BlockWith("new SocketsHttpHandler()"), "logger.LogInformation(await client.GetStringAsync(Environment.GetEnvironmentVariable(\"PEER\")));"]);
        File.WriteAllText(Path.Combine(project, "Worker.cs"), $"using KernelTls;\n{File.ReadAllText(Path.Combine(project, "Worker.cs"))}");
        await RunAsync(project, "dotnet build");
        using WebServer server = await WebServer.StartAsync(Path.Combine(await workshop.PublishAsync(ConsumerApp.Web, "web"), "web.dll"));
        string authority = Certificates.WriteAuthority(_home.FullName);

        using Application worker = Programs.Start(
            Path.Combine(project, "bin/Debug/net10.0/new-worker.dll"), [(Application.DirectVariable, "1"), ("PEER", $"{server.Address}"), ("SSL_CERT_FILE", authority)]);
        await worker.WaitForAsync("Hello World!");

        Assert.True(worker.HasLoaded(Repository.Shim));
    }

    /// <summary>Types the commands of README.md in the project's folder, with another port, until the application has answered.</summary>
    private async Task FollowAsync(string project)
    {
        string[] commands = Readme.BlockWith("dotnet dev-certs");
        string request = Assert.Single(Readme.BlockWith("curl "));
        foreach (string command in commands[..^1])
        {
            await RunAsync(project, command);
        }

        string address = WithPort(Address);
        KtlsPlatform platform = KtlsPlatform.Probe();
        string proof = platform.IsSupported ? "kernel TLS" : $"OpenSSL on the socket, without kernel TLS: {platform.NotSupportedReason}.";
        using Application application = Workshop.Type(project, WithPort(commands[^1]), Home(), (Application.DirectVariable, "1"));
        await application.WaitForAsync($"listening on: {address}", s_limit);
        using Application curl = Workshop.Type(project, WithPort(request));
        await curl.SucceedAsync();
        await application.WaitForAsync($"{address} uses {proof}");

        Assert.DoesNotContain("fail: ", application.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("crit: ", application.Said, StringComparison.Ordinal);
    }

    private async Task RunAsync(string project, string command)
    {
        using Application application = Workshop.Type(project, command, Home());
        await application.SucceedAsync(s_limit);
    }

    /// <summary>Returns a home folder for the certificate, with the machine's package sources.</summary>
    private (string, string) Home()
    {
        string sources = Path.Combine(Environment.GetFolderPath(Environment.SpecialFolder.UserProfile), ".nuget/NuGet/NuGet.Config");
        string copy = _home[".nuget/NuGet/NuGet.Config"];
        if (File.Exists(sources) && !File.Exists(copy))
        {
            Directory.CreateDirectory(Path.GetDirectoryName(copy)!);
            File.Copy(sources, copy);
        }

        return ("HOME", _home.FullName);
    }

    private string WithPort(string text)
    {
        Assert.Contains(Address, text, StringComparison.Ordinal);
        return text.Replace("8443", _port.Number.ToString(CultureInfo.InvariantCulture), StringComparison.Ordinal);
    }

    /// <summary>Inserts lines into a file of the template, behind a text that it has once.</summary>
    private static void Insert(string path, string behind, string[] lines)
    {
        string[] parts = File.ReadAllText(path).Replace("\r", "", StringComparison.Ordinal).Split(behind);
        Assert.Equal(2, parts.Length);
        File.WriteAllText(path, $"{parts[0]}{behind}{string.Join('\n', lines)}\n{parts[1]}");
    }
}
