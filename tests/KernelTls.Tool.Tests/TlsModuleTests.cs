using KernelTls.Tests;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Tests;

/// <summary>Tests the state of the tls module with the files of imaginary machines.</summary>
public class TlsModuleTests
{
    private const string Release = "7.2.12";
    private const string HostUsers = "         0          0 4294967295\n";
    private const string AllCapabilities = "CapEff:\t000001ffffffffff\n";
    private const string NoCapabilities = "CapEff:\t00000000a80425fb\n";

    [Theory]
    [InlineData(nameof(TlsModuleState.Loaded), "No action is needed", "proc/modules", "tls 155648 0 - Live 0x0\n", "proc/net/tls_stat", "TlsTxSw 0\n")]
    [InlineData(nameof(TlsModuleState.BuiltIn), "No action is needed", "proc/modules", "aesni 1 0\n", "proc/sys/net/ipv4/tcp_available_ulp", "espintcp mptcp tls\n")]
    [InlineData(nameof(TlsModuleState.Loadable), "modprobe tls (and echo tls", "lib/modules/7.2.12/modules.dep", "kernel/net/tls/tls.ko.xz:\n", "proc/modules", "")]
    [InlineData(nameof(TlsModuleState.Absent), "CONFIG_TLS", "lib/modules/7.2.12/modules.dep", "kernel/net/sctp/sctp.ko:\n", "proc/modules", "notls 1\n")]
    [InlineData(nameof(TlsModuleState.NotVisible), "try modprobe tls as root on the host", "lib/modules/6.1.0/modules.dep", "kernel/net/tls/tls.ko:\n", "proc/modules", "")]
    public void Its_state_and_what_to_do(string state, string toDo, params string[] files)
    {
        TlsModule module = Read([.. files, "proc/self/uid_map", HostUsers, "proc/self/status", AllCapabilities]);

        Assert.Equal(Enum.Parse<TlsModuleState>(state), module.State);
        Assert.Contains(toDo, module.ToDo, StringComparison.Ordinal);
        Assert.True(module.CanLoad);
        Assert.False(module.InContainer);
    }

    [Theory]
    [InlineData(false, false, HostUsers, NoCapabilities, "lacks CAP_NET_ADMIN")]
    [InlineData(true, false, HostUsers, NoCapabilities, "Load it on the host", ".dockerenv", "")]
    [InlineData(true, false, "         0       1000          1\n", AllCapabilities, "Load it on the host")]
    public void A_process_that_may_not_load_it(
        bool container, bool canLoad, string users, string status, string toDo, params string[] files)
    {
        TlsModule module = Read(
            [.. files, "lib/modules/7.2.12/modules.dep", "kernel/net/tls/tls.ko:\n", "proc/self/uid_map", users, "proc/self/status", status]);

        Assert.Equal(TlsModuleState.Loadable, module.State);
        Assert.Equal(canLoad, module.CanLoad);
        Assert.Equal(container, module.InContainer);
        Assert.Contains(toDo, module.ToDo, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(true, AllCapabilities, "was not loaded on request")]
    [InlineData(false, AllCapabilities, "modprobe tls (and echo tls")]
    [InlineData(true, NoCapabilities, "lacks CAP_NET_ADMIN")]
    public void One_that_is_not_loaded_though_it_was_asked_for(bool refused, string status, string toDo)
    {
        TlsModule module = Read(
            ["lib/modules/7.2.12/modules.dep", "kernel/net/tls/tls.ko:\n", "proc/self/uid_map", HostUsers, "proc/self/status", status]);

        Assert.Contains(toDo, module.After(module, refused).ToDo, StringComparison.Ordinal);
    }

    private static TlsModule Read(string[] files)
    {
        using TemporaryDirectory root = new();
        for (int i = 0; i < files.Length; i += 2)
        {
            Directory.CreateDirectory(Path.GetDirectoryName(root[files[i]])!);
            File.WriteAllText(root[files[i]], files[i + 1]);
        }

        return TlsModule.Read(root.FullName, Release);
    }
}
