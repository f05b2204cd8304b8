using System.Globalization;
using System.Runtime.InteropServices;
using System.Runtime.Intrinsics.X86;
using System.Text;

namespace KernelTls.Tool.Readers;

/// <summary>Provides facts about the machine on which the comparability of measurements depends.</summary>
internal static class Machine
{
    private const string Tcg = "TCG";
    private const string UserModeLinux = "User-Mode Linux";

    /// <summary>
    /// Gets the name of the machine's hypervisor: <c>User-Mode Linux</c>, <c>TCG</c> (qemu without hardware
    /// virtualization), the name or signature of another hypervisor, or <see langword="null"/> if there is none or it
    /// is unknown.
    /// </summary>
    public static string? Hypervisor { get; } = Name(ReadProcessors(), ReadSignature());

    /// <summary>
    /// Gets a value that indicates whether times measured on this machine do not apply to a real one.
    /// </summary>
    public static bool IsEmulated => Caveat(Hypervisor) is not null;

    /// <summary>Returns the name of the hypervisor.</summary>
    /// <param name="processors">The text of /proc/cpuinfo, or an empty string if it cannot be read.</param>
    /// <param name="signature">
    /// The hypervisor's signature from CPUID, or <see langword="null"/> if there is none.
    /// </param>
    public static string? Name(string processors, string? signature)
    {
        // Programs on User-Mode Linux run on the real processor, and CPUID describes the host machine.
        if (IsUserModeLinux(processors))
        {
            return UserModeLinux;
        }

        return signature switch
        {
            "TCGTCGTCGTCG" => Tcg,
            "KVMKVMKVM" => "KVM",
            "Microsoft Hv" => "Hyper-V",
            "VMwareVMware" => "VMware",
            "XenVMMXenVMM" => "Xen",
            _ => signature,
        };
    }

    /// <summary>
    /// Returns a caveat about times measured on this hypervisor, or <see langword="null"/> if there is none.
    /// </summary>
    public static string? Caveat(string? hypervisor) => hypervisor switch
    {
        UserModeLinux => "This machine is User-Mode Linux, a process of another kernel: its times do not apply to a real one. eng/bench counts instructions instead.",
        Tcg => "This machine is emulated (TCG): its times do not apply to a real one. eng/bench counts instructions instead.",
        _ => null,
    };

    /// <summary>Reads an integer from /proc/sys, or returns <see langword="null"/>.</summary>
    public static long? Sysctl(string name)
    {
        try
        {
            return long.Parse(File.ReadAllText("/proc/sys/" + name.Replace('.', '/')), CultureInfo.InvariantCulture);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or FormatException)
        {
            return null;
        }
    }

    private static bool IsUserModeLinux(string processors) => processors.Split('\n')
        .Select(line => line.Split(':', 2, StringSplitOptions.TrimEntries))
        .Any(field => field is ["vendor_id", "User Mode Linux"]);

    private static string ReadProcessors()
    {
        try
        {
            return File.ReadAllText("/proc/cpuinfo");
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return "";
        }
    }

    private static string? ReadSignature()
    {
        const int Features = 1;
        const int HypervisorBit = 31;
        const int Signature = 0x40000000;
        if (!X86Base.IsSupported || ((X86Base.CpuId(Features, 0).Ecx >> HypervisorBit) & 1) == 0)
        {
            return null;
        }

        (_, int ebx, int ecx, int edx) = X86Base.CpuId(Signature, 0);
        return Encoding.ASCII.GetString(MemoryMarshal.AsBytes<int>([ebx, ecx, edx])).TrimEnd('\0', ' ');
    }
}
