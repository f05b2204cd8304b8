using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Runs <see cref="ValidationPolicyTests"/> with the runtime's switch that lets a server download certificates. The runtime
/// reads the switch once, so each run is a separate process.
/// </summary>
public class ServerDownloadTests
{
    private const string Switch = "System.Net.Security.EnableServerAiaDownloads";
    private const string Variable = "DOTNET_SYSTEM_NET_SECURITY_ENABLESERVERAIADOWNLOADS";

    public static TheoryData<string> Values => ["1", "true", "0", "yes"];

    /// <summary>Gets a value that indicates whether this process has the switch set.</summary>
    public static bool IsSwitchedOn { get; } = AppContext.TryGetSwitch(Switch, out bool isOn)
        ? isOn
        : Environment.GetEnvironmentVariable(Variable) is "1" or "true";

    [Theory]
    [MemberData(nameof(Values))]
    public Task The_environment_decides_as_on_SslStream(string value) =>
        OwnProcess.RunAsync(typeof(ValidationPolicyTests), (Variable, value));

    [Theory]
    [InlineData(true, "0")]
    [InlineData(false, "1")]
    public Task The_AppContext_switch_wins(bool isOn, string variable) =>
        OwnProcess.RunAsync(typeof(ServerDownloadTests), isOn ? nameof(Switch_on) : nameof(Switch_off), (Variable, variable));

    [Fact(Explicit = true)]
    public Task Switch_on() => SwitchAsync(true);

    [Fact(Explicit = true)]
    public Task Switch_off() => SwitchAsync(false);

    private static async Task SwitchAsync(bool isOn)
    {
        AppContext.SetSwitch(Switch, isOn);
        Assert.Equal(isOn, IsSwitchedOn);
        foreach (TlsMode mode in Modes.Every)
        {
            await new ValidationPolicyTests().A_server_asks_the_addresses_in_a_client_s_certificate_only_where_SslStream_does(
                mode, System.Security.Authentication.SslProtocols.Tls13, withPolicy: false);
        }
    }
}
