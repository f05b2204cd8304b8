using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>
/// Tests a module that exists but is not loaded: what a process without privilege reports, and what one with privilege
/// does.
/// </summary>
[Trait("cell", "tools")]
public class PrivilegeTests
{
    [Fact]
    public async Task Without_CAP_NET_ADMIN_the_advice_is_to_load_it_and_with_it_looking_does()
    {
        if (!Cell.KtlsExpected)
        {
            Assert.Skip("Takes the kernel's tls module away: in lab cells only.");
        }

        await RunAsync("modprobe", "--remove", "tls");
        try
        {
            JsonElement contained = await InfoAsync(ExitCode.No, "unshare", "--user", "--map-root-user");
            JsonElement bare = await InfoAsync(ExitCode.No, "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin");
            JsonElement root = await InfoAsync(ExitCode.Ok, "env");

            Assert.Equal("ModuleMissing", contained.Text("reason"));
            Assert.Equal("True", contained.Text("module", "inContainer"));
            Assert.Equal("False", contained.Text("module", "canLoad"));
            Assert.StartsWith("Load it on the host: modprobe tls", contained.Text("advice"), StringComparison.Ordinal);
            Assert.Equal("Loadable", bare.Text("module", "state"));
            Assert.Equal("False", bare.Text("module", "canLoad"));
            Assert.Contains("lacks CAP_NET_ADMIN", bare.Text("advice"), StringComparison.Ordinal);
            Assert.Equal("Loaded", root.Text("module", "state"));
            Assert.Equal("True", root.Text("module", "loadedByLooking"));
        }
        finally
        {
            await RunAsync("modprobe", "tls");
        }
    }

    private static async Task<JsonElement> InfoAsync(int code, string program, params string[] arguments)
    {
        using ExternalProgram info = ExternalProgram.Start(program, null, [.. arguments, "dotnet", Ktls.Path, "info", "--json"]);
        using StreamReader reader = new(info.Output);
        string output = await reader.ReadToEndAsync().InTime($"{program} to say something");
        Assert.True(code == await info.ExitAsync(), $"{program}: {output}{info.Errors}");
        return JsonDocument.Parse(output).RootElement;
    }

    private static async Task RunAsync(string program, params string[] arguments)
    {
        using ExternalProgram running = ExternalProgram.Start(program, null, arguments);
        await running.SucceedAsync();
    }
}
