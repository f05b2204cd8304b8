namespace KernelTls.UnitTests;

/// <summary>Tests in which processes the start-up hook does nothing.</summary>
public class HookGateTests
{
    [Theory]
    [InlineData("10.0.0", "1", null, null, true)]
    [InlineData("11.0.3", "true", null, null, true)]
    [InlineData("10.0.0", "yes", null, null, true)] // The library reports it.
    [InlineData("10.0.0", "", "1", null, true)]
    [InlineData("10.0.0", null, "1", null, true)]
    [InlineData("10.0.0", null, null, true, true)]
    [InlineData("10.0.0", "1", null, false, true)]
    [InlineData("10.0.0", null, null, null, false)]
    [InlineData("10.0.0", "", "", null, false)]
    [InlineData("10.0.0", "0", "1", true, false)]
    [InlineData("10.0.0", "False", "1", null, false)]
    [InlineData("10.0.0", null, "0", null, false)]
    [InlineData("10.0.0", null, "1", false, false)]
    [InlineData("9.0.11", "1", "1", true, false)]
    [InlineData("8.0.0", "1", "1", true, false)]
    [InlineData("4.0.30319.42000", "1", "1", true, false)] // .NET Core 2
    public void Is_it_open(string version, string? kernel, string? direct, bool? contextSwitch, bool expected) => Assert.Equal(
        expected,
        HookGate.IsOpen(
            Version.Parse(version),
            name => name switch
            {
                "DOTNET_SYSTEM_NET_SECURITY_KTLS" => kernel,
                "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL" => direct,
                _ => throw new ArgumentException(name),
            },
            (string name, out bool isOn) =>
            {
                Assert.Equal("System.Net.Security.Ktls", name);
                isOn = contextSwitch == true;
                return contextSwitch is not null;
            }));

    /// <summary>A hook that needs another assembly, or a newer .NET, ends the processes of an older one.</summary>
    [Fact]
    public void The_hook_refers_to_nothing_but_the_base_library_of_an_older_NET()
    {
        System.Reflection.AssemblyName[] references = typeof(HookGate).Assembly.GetReferencedAssemblies();

        Assert.NotEmpty(references);
        Assert.All(references, r => Assert.True(r.Version <= new Version(6, 0, 0, 0) && r.Name!.StartsWith("System.", StringComparison.Ordinal), r.FullName));
    }
}
