using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Tests;

/// <summary>
/// Tests the detection of the machine by /proc/cpuinfo and the hypervisor's signature, and whether its times are
/// meaningful.
/// </summary>
public class MachineTests
{
    private const string Real = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: Some Processor 3000\n";
    private const string UserMode = "processor\t: 0\nvendor_id\t: User Mode Linux\nmodel name\t: UML\nmode\t\t: skas\nhost\t\t: Linux host 6.1.0 x86_64\n";

    [Theory]
    [InlineData(Real, null, null)]
    [InlineData(Real, "TCGTCGTCGTCG", "TCG")]
    [InlineData(Real, "KVMKVMKVM", "KVM")]
    [InlineData(Real, "Microsoft Hv", "Hyper-V")]
    [InlineData(Real, "bhyve bhyve", "bhyve bhyve")]
    [InlineData("", "KVMKVMKVM", "KVM")]
    public void The_signature_names_the_hypervisor(string processors, string? signature, string? name) =>
        Assert.Equal(name, Machine.Name(processors, signature));

    /// <summary>
    /// Programs of User-Mode Linux run on the real processor, whose CPUID names the hypervisor of the host.
    /// </summary>
    [Theory]
    [InlineData(null)]
    [InlineData("KVMKVMKVM")]
    [InlineData("TCGTCGTCGTCG")]
    public void User_Mode_Linux_comes_before_the_signature(string? signature) =>
        Assert.Equal("User-Mode Linux", Machine.Name(UserMode, signature));

    [Fact]
    public void Only_the_vendor_makes_it_User_Mode_Linux() =>
        Assert.Null(Machine.Name("vendor_id\t: GenuineIntel\nmodel name\t: A host of User Mode Linux\n", signature: null));

    [Theory]
    [InlineData(null, null)]
    [InlineData("KVM", null)]
    [InlineData("TCG", "This machine is emulated (TCG): its times do not apply to a real one.")]
    [InlineData("User-Mode Linux", "This machine is User-Mode Linux, a process of another kernel: its times do not apply to a real one.")]
    public void Times_that_mean_nothing_have_a_caveat(string? hypervisor, string? caveat)
    {
        string? said = Machine.Caveat(hypervisor);

        Assert.Equal(caveat is null, said is null);
        Assert.StartsWith(caveat ?? "", said ?? "", StringComparison.Ordinal);
    }
}
