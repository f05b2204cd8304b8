using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests what a package does in a program that uses nothing of it: it notices from the start of the process which connections the switch
/// does not reach, in each language, and warns of items that have no effect.
/// </summary>
[Trait("loop", "outer")]
public class StartupTests(Workshop workshop)
{
    private const string Log = "KERNELTLS_LOG";

    [Fact]
    public async Task A_program_in_CSharp_with_KernelTls_Weave_alone_names_its_stock_connections()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "stock/stock.csproj", Project("Microsoft.NET.Sdk", "<OutputType>Exe</OutputType><ImplicitUsings>enable</ImplicitUsings><TreatWarningsAsErrors>true</TreatWarningsAsErrors>", Package("KernelTls.Weave")));
        File.Copy(Path.Combine(Repository.Root, "tests", "KernelTls.PackageTests", "Apps", "Stock.cs"), directory["stock/Program.cs"]);
        await workshop.BuildAsync(directory["stock"]);
        string program = directory["stock/bin/Debug/net10.0/stock.dll"];

        Assert.Equal("loaded: \n", await RunAsync(program, (Log, "1")));
        Assert.Equal("loaded: \n", await RunAsync(program, (Log, "1"), (Application.KernelVariable, "0")));
        string told = await RunAsync(program, (Log, "1"), (Application.DirectVariable, "1"));
        Assert.Contains("loaded: KernelTls\n", told, StringComparison.Ordinal);
        Assert.Contains("KernelTls: stock System.Net.Http: SslStream, not reached by the switch. client of 127.0.0.1, ", told, StringComparison.Ordinal);
        Assert.Contains("KernelTls: stock stock: SslStream, not reached by the switch. server, stock (Program). ", told, StringComparison.Ordinal);

        // Without its file the program runs as it did, and says why.
        File.Delete(directory["stock/bin/Debug/net10.0/KernelTls.dll"]);
        Directory.Delete(directory["stock/bin/Debug/net10.0/runtimes"], recursive: true);
        Assert.Equal("loaded: \n", await RunAsync(program, (Log, "1")));
        Assert.Contains("KernelTls: switched on, but the library cannot be loaded. ", await RunAsync(program, (Application.KernelVariable, "1")), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("fs", """
        open Microsoft.AspNetCore.Builder
        [<EntryPoint>]
        let main args =
            let app = WebApplication.CreateBuilder(args).Build()
            app.StartAsync().Wait()
            0
        """)]
    [InlineData("vb", """
        Imports Microsoft.AspNetCore.Builder
        Module Program
            Sub Main(args As String())
                Dim app = WebApplication.CreateBuilder(args).Build()
                app.StartAsync().Wait()
            End Sub
        End Module
        """)]
    public async Task A_web_application_in_another_language_has_the_startup(string language, string program)
    {
        using TemporaryDirectory directory = new();
        string compile = language == "fs" ? """<Compile Include="Program.fs" />""" : "";
        Write(directory, $"web/web.{language}proj", Project("Microsoft.NET.Sdk.Web", "<OutputType>Exe</OutputType>", Package("KernelTls.AspNetCore") + compile));
        Write(directory, $"web/Program.{language}", program);
        await workshop.BuildAsync(directory["web"]);
        string web = directory["web/bin/Debug/net10.0/web.dll"];

        Assert.Contains("no endpoint uses https", await RunAsync(web, (Application.KernelVariable, "1"), ("ASPNETCORE_URLS", "http://127.0.0.1:0")), StringComparison.Ordinal);
        Assert.DoesNotContain("KernelTls", await RunAsync(web, ("ASPNETCORE_URLS", "http://127.0.0.1:0")), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Items_that_have_no_effect_are_warnings_and_a_referenced_file_is_woven()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "file/file.csproj", Project("Microsoft.NET.Sdk", "<ImplicitUsings>enable</ImplicitUsings>", ""));
        Write(directory, "file/File.cs", "using System.Net.Security; public static class FromFile { public static object Make() => new SslStream(new MemoryStream()); }");
        Write(directory, "library/library.csproj", Project(
            "Microsoft.NET.Sdk", "<ImplicitUsings>enable</ImplicitUsings>", """<PackageReference Include="Npgsql" Version="10.0.3" /><KernelTlsWeave Include="Npgsql" />""" + Package("KernelTls.Weave")));
        Write(directory, "library/Library.cs", "using System.Net.Security; public static class Library { public static object Make() => new SslStream(new MemoryStream()); }");
        Write(directory, "app/app.csproj", Project(
            "Microsoft.NET.Sdk",
            "<OutputType>Exe</OutputType><ImplicitUsings>enable</ImplicitUsings>",
            """
            <ProjectReference Include="../library/library.csproj" />
            <Reference Include="file"><HintPath>../file/bin/Debug/net10.0/file.dll</HintPath></Reference>
            <KernelTlsWeave Include="file" />
            """));
        Write(directory, "app/Program.cs", """Console.WriteLine($"{FromFile.Make().GetType().Name} {Library.Make().GetType().Name}");""");
        await workshop.BuildAsync(directory["file"]);

        string said = await workshop.BuildAsync(directory["app"]);

        Assert.Contains("KernelTls.Weave: file: 1 place\n", said, StringComparison.Ordinal);
        Assert.Contains("warning KTLSW010: KernelTlsWeave of library names 'Npgsql', which has no effect", said, StringComparison.Ordinal);
        Assert.DoesNotContain("KTLSW005", said, StringComparison.Ordinal);
        Assert.Equal("KtlsStream SslStream\n", await RunAsync(directory["app/bin/Debug/net10.0/app.dll"], (Application.DirectVariable, "1")));

        // With All, the project is one that All does not include.
        File.WriteAllText(directory["app/app.csproj"], File.ReadAllText(directory["app/app.csproj"]).Replace("KernelTlsWeave Include=\"file\"", "KernelTlsWeave Include=\"All\"", StringComparison.Ordinal));
        said = await workshop.BuildAsync(directory["app"]);
        Assert.Contains("warning KTLSW011: All does not include library", said, StringComparison.Ordinal);
        Assert.DoesNotContain("KTLSW010", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Items_without_the_weaver_and_the_property_are_warnings()
    {
        using TemporaryDirectory directory = new();
        Write(directory, "none/none.csproj", Project(
            "Microsoft.NET.Sdk", "<OutputType>Exe</OutputType><KernelTlsWeave>All</KernelTlsWeave>", """<KernelTlsWeave Include="Npgsql" />""" + Package("KernelTls")));
        Write(directory, "none/Program.cs", "System.Console.WriteLine();");

        string said = await workshop.BuildAsync(directory["none"]);

        Assert.Contains("warning KTLSW008: KernelTlsWeave names Npgsql, and nothing weaves it", said, StringComparison.Ordinal);
        Assert.Contains("warning KTLSW009: The property KernelTlsWeave has no effect", said, StringComparison.Ordinal);
    }

    private static async Task<string> RunAsync(string program, params (string, string)[] environment)
    {
        using Application application = Application.Start("sh", Path.GetDirectoryName(program)!, environment, "-c", $"exec dotnet {program} 2>&1");
        return await application.SucceedAsync(Limits.Wait);
    }

    private static string Package(string name) => $"""<PackageReference Include="{name}" Version="0.1.0" />""";

    private static string Project(string sdk, string properties, string items) => $"""
        <Project Sdk="{sdk}">
          <PropertyGroup>
            <TargetFramework>net10.0</TargetFramework>
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
