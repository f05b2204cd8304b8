using System.Globalization;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests applications with woven libraries, created as users create them and published in every form. The libraries do not know it, and
/// events report the data paths of their connections.
/// </summary>
[Trait("loop", "outer")]
public partial class WeaveTests(Workshop workshop)
{
    private const string OnOpenSsl = "HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled Npgsql";

    [Fact]
    [Trait("cell", "programs")]
    public async Task A_package_and_an_item_put_Npgsql_on_OpenSSL_or_into_the_kernel()
    {
        string program = Path.Combine(await workshop.PublishAsync(ConsumerApp.WithNpgsql, "woven"), "woven.dll");

        await AssertReachedAsync(program);
    }

    [Fact]
    [Trait("cell", "programs")]
    public async Task Trimmed_in_a_single_file_with_the_runtime_in_it()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.WithNpgsql, "woven-trimmed", "--runtime", "linux-x64", "--self-contained", "-p:PublishTrimmed=true", "-p:PublishSingleFile=true");

        await AssertReachedAsync(Path.Combine(published, "woven"));
    }

    [Fact]
    public async Task Compiled_ready_to_run()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.WithNpgsql, "woven-ready-to-run", "--runtime", "linux-x64", "--self-contained", "false", "-p:PublishReadyToRun=true");

        await AssertReachedAsync(Path.Combine(published, "woven.dll"));
    }

    /// <summary>Enables events, which native applications do not have by default and which report the data path.</summary>
    [Fact]
    [Trait("cell", "programs")]
    public async Task Compiled_to_native_code()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.WithNpgsql, "woven-native", "--runtime", "linux-x64", "-p:PublishAot=true", "-p:EventSourceSupport=true");

        Assert.Empty(Directory.GetFiles(published, "*.dll"));
        await AssertReachedAsync(Path.Combine(published, "woven"));
    }

    [Theory]
    [InlineData(Application.DirectVariable)]
    [InlineData(Application.KernelVariable)]
    [Trait("cell", "programs")]
    public async Task A_reverse_proxy_has_both_its_sides_on_OpenSSL_or_in_the_kernel(string variable)
    {
        bool kernel = variable == Application.KernelVariable;
        Assert.True(!kernel || KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        bool receives = KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);
        (string server, string client) = (kernel, KtlsPlatform.Probe().IsSupported, receives) switch
        {
            (false, _, _) => ("send=openssl (NotEnabled) receive=openssl (NotEnabled)", "HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled"),
            (true, false, _) => (
                $"send=managed ({KtlsPlatform.Probe().NotSupportedReason}) receive=managed ({KtlsPlatform.Probe().NotSupportedReason})",
                $"Fallback: {KtlsPlatform.Probe().NotSupportedReason}"),
            (true, true, true) => ("send=kernel receive=kernel", "HandshakeCompleted: Kernel None Kernel None"),
            _ => ("send=kernel receive=openssl (OpenSslTooOld)", "HandshakeCompleted: Kernel None OpenSsl OpenSslTooOld"),
        };
        string proxy = Path.Combine(await workshop.PublishAsync(ConsumerApp.Proxy, "proxy"), "proxy.dll");
        using WebServer process = await WebServer.StartAsync(proxy, (variable, "1"));

        Assert.Equal(server, await process.GetAsync("/forwarded", "2.0"));
        string told = await process.GetAsync("/client", "2.0");
        Assert.StartsWith(client, told, StringComparison.Ordinal);
        Assert.EndsWith(" Yarp.ReverseProxy", told, StringComparison.Ordinal);
    }

    /// <summary>Another project references Npgsql, and central package management sets the versions of both.</summary>
    [Fact]
    public async Task A_package_of_another_project_is_woven_under_central_package_management()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "Directory.Packages.props", """
            <Project>
              <PropertyGroup><ManagePackageVersionsCentrally>true</ManagePackageVersionsCentrally></PropertyGroup>
              <ItemGroup>
                <PackageVersion Include="Npgsql" Version="10.0.3" />
                <PackageVersion Include="KernelTls.Weave" Version="0.1.0" />
              </ItemGroup>
            </Project>
            """);
        Write(directory, "library/library.csproj", Project("", """<PackageReference Include="Npgsql" />"""));
        Write(directory, "library/Library.cs", "public static class Library { public static string Name => typeof(Npgsql.NpgsqlConnection).FullName!; }");
        Write(directory, "app/app.csproj", Project(
            "<OutputType>Exe</OutputType>",
            """
            <PackageReference Include="KernelTls.Weave" />
            <ProjectReference Include="../library/library.csproj" />
            <KernelTlsWeave Include="Npgsql" />
            """));
        File.Copy(Path.Combine(Repository.Root, "tests", "KernelTls.PackageTests", "Apps", "Woven.cs"), directory["app/Program.cs"]);

        string said = await workshop.BuildAsync(directory["app"]);

        Assert.Contains("KernelTls.Weave: Npgsql: 3 places", said, StringComparison.Ordinal);
        await AssertReachedAsync(directory["app/bin/Debug/net10.0/app.dll"]);
    }

    [Fact]
    public async Task A_build_without_changes_writes_nothing_and_another_folder_gives_the_same_bytes()
    {
        using TemporaryDirectory directory = new();
        foreach (string name in (string[])["one", "two"])
        {
            Write(directory, $"{name}/{name}.csproj", Project(
                "<OutputType>Exe</OutputType><KernelTlsWeaveRequireCloseNotify>true</KernelTlsWeaveRequireCloseNotify>",
                """
                <PackageReference Include="Npgsql" Version="10.0.3" />
                <PackageReference Include="KernelTls.Weave" Version="0.1.0" />
                <KernelTlsWeave Include="Npgsql;$(AssemblyName)" ExpectNoPadding="true" AllowSocketReuse="true" />
                """));
            Write(directory, $"{name}/Program.cs", "using System.Net.Security; _ = new SslStream(new MemoryStream());");
        }

        string first = await workshop.BuildAsync(directory["one"]);
        Dictionary<string, DateTime> before = Times(directory["one"]);
        string second = await workshop.BuildAsync(directory["one"]);
        await workshop.BuildAsync(directory["two"]);

        Assert.Contains("KernelTls.Weave: Npgsql: 3 places\n", first, StringComparison.Ordinal);
        Assert.Contains("KernelTls.Weave: one: 1 place\n", first, StringComparison.Ordinal);
        Assert.Contains("KernelTls.Weave: Npgsql: 3 places, woven before\n", second, StringComparison.Ordinal);
        Assert.Equal(before, Times(directory["one"]));
        Assert.Equal(
            File.ReadAllBytes(directory["one/obj/Debug/net10.0/KernelTls.Weave/Npgsql.dll"]),
            File.ReadAllBytes(directory["two/obj/Debug/net10.0/KernelTls.Weave/Npgsql.dll"]));

        // What the project chooses reaches the application.
        string configuration = File.ReadAllText(directory["one/bin/Debug/net10.0/one.runtimeconfig.json"]);
        Assert.Contains("\"KernelTls.Weaving.RequireCloseNotify\": true", configuration, StringComparison.Ordinal);
        Assert.Contains("\"KernelTls.Weaving.ExpectNoPadding\": \"Npgsql;one\"", configuration, StringComparison.Ordinal);
        Assert.Contains("\"KernelTls.Weaving.AllowSocketReuse\": \"Npgsql;one\"", configuration, StringComparison.Ordinal);

        // Without the item the assembly is compiled again, and not woven.
        string project = File.ReadAllText(directory["one/one.csproj"]);
        File.WriteAllText(directory["one/one.csproj"], project.Replace(";$(AssemblyName)", "", StringComparison.Ordinal));
        await workshop.BuildAsync(directory["one"]);
        Assert.DoesNotContain("KernelTls.Weaving", File.ReadAllText(directory["one/bin/Debug/net10.0/one.dll"]), StringComparison.Ordinal);

        static Dictionary<string, DateTime> Times(string project) => Directory.GetFiles(project, "*.dll", SearchOption.AllDirectories)
            .ToDictionary(f => f, File.GetLastWriteTimeUtc);
    }

    [Fact]
    public async Task Eight_libraries_are_woven_in_less_than_five_seconds()
    {
        (string Package, string Version, int Places)[] libraries =
        [
            ("Npgsql", "10.0.3", 3), ("StackExchange.Redis", "3.4.35", 5), ("MySqlConnector", "2.6.2", 4), ("MQTTnet", "5.2.0.1603", 4),
            ("RabbitMQ.Client", "7.2.2", 2), ("MongoDB.Driver", "3.14.0", 4), ("MailKit", "4.18.2", 10), ("Yarp.ReverseProxy", "2.3.0", 1),
        ];
        using TemporaryDirectory directory = new();
        string references = string.Join('\n', libraries.Select(l => $"""<PackageReference Include="{l.Package}" Version="{l.Version}" />"""));
        Write(directory, "eight/eight.csproj", Project(
            "<OutputType>Exe</OutputType>",
            $"""
            {references}
            <PackageReference Include="KernelTls.Weave" Version="0.1.0" />
            <KernelTlsWeave Include="All" />
            """));
        Write(directory, "eight/Program.cs", "Console.WriteLine();");

        string said = await workshop.BuildAsync(directory["eight"], "-consoleLoggerParameters:PerformanceSummary");

        Assert.All(libraries, l => Assert.Contains(
            $"KernelTls.Weave: {l.Package}: {l.Places} place", said, StringComparison.Ordinal));
        Assert.DoesNotContain("warning KTLSW", said, StringComparison.Ordinal);
        int milliseconds = int.Parse(WeavingTime().Match(said).Groups[1].Value, CultureInfo.InvariantCulture);
        Assert.InRange(milliseconds, 1, 5000);
        TestContext.Current.TestOutputHelper?.WriteLine($"{milliseconds} ms");
    }

    [Fact]
    public async Task A_misspelled_name_is_a_warning_of_the_build()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "wrong/wrong.csproj", Project(
            "<OutputType>Exe</OutputType>",
            """
            <PackageReference Include="Npgsql" Version="10.0.3" />
            <PackageReference Include="KernelTls.Weave" Version="0.1.0" />
            <KernelTlsWeave Include="Npgsq" />
            """));
        Write(directory, "wrong/Program.cs", "Console.WriteLine();");

        string said = await workshop.BuildAsync(directory["wrong"]);

        Assert.Contains("warning KTLSW005: KernelTlsWeave names 'Npgsq', and no package of wrong has such an assembly.", said, StringComparison.Ordinal);
        Assert.Contains("those with something to weave are Npgsql.", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_package_warns_of_a_stream_that_bypasses_it()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "bypass/bypass.csproj", Project("<OutputType>Exe</OutputType>", """<PackageReference Include="KernelTls" Version="0.1.0" />"""));
        Write(directory, "bypass/Program.cs", """
            using System.Net.Security;
            using KernelTls;

            SslStream stream = new KtlsStream(Stream.Null);
            stream.AuthenticateAsClient("localhost");
            """);

        string said = await workshop.BuildAsync(directory["bypass"]);

        Assert.Contains("Program.cs(5,1): warning KTLS001: 'AuthenticateAsClient' is that of SslStream", said, StringComparison.Ordinal);
    }

    [GeneratedRegex(@"(\d+) ms +WeavePackages +1 calls")]
    private static partial Regex WeavingTime();

    /// <summary>Asserts that the application of Apps/Woven.cs reaches OpenSSL or the kernel where a variable says so, and is stock otherwise.</summary>
    internal static async Task AssertReachedAsync(string program)
    {
        string kernel = KtlsPlatform.Probe().IsSupported
            ? $"HandshakeCompleted: Kernel None {(KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) ? "OpenSsl OpenSslTooOld" : "Kernel None")} Npgsql"
            : $"Fallback: {KtlsPlatform.Probe().NotSupportedReason}";

        Assert.DoesNotContain("Handshake", await OpenAsync(program), StringComparison.Ordinal);
        Assert.Contains(OnOpenSsl, await OpenAsync(program, (Application.DirectVariable, "1")), StringComparison.Ordinal);
        Assert.Contains(kernel, await OpenAsync(program, (Application.KernelVariable, "1")), StringComparison.Ordinal);
        Assert.DoesNotContain("Handshake", await OpenAsync(program, (Application.KernelVariable, "0")), StringComparison.Ordinal);
    }

    internal static async Task<string> OpenAsync(string program, params (string, string)[] environment)
    {
        using FakePostgres server = new();
        using Application application = Programs.Start(program, environment, server.Port);
        await server.ServeAsync();
        string said = await application.SucceedAsync();
        Assert.Contains($"the server says: {FakePostgres.Refusal}", said, StringComparison.Ordinal);
        return said;
    }

    private static string Project(string properties, string items) => $"""
        <Project Sdk="Microsoft.NET.Sdk">
          <PropertyGroup>
            <TargetFramework>net10.0</TargetFramework>
            <ImplicitUsings>enable</ImplicitUsings>
            <Nullable>enable</Nullable>
            {properties}
          </PropertyGroup>
          <ItemGroup>
            {items}
          </ItemGroup>
        </Project>
        """;

    private static void Write(TemporaryDirectory directory, string path, string content)
    {
        Directory.CreateDirectory(Path.GetDirectoryName(directory[path])!);
        File.WriteAllText(directory[path], content);
    }
}
