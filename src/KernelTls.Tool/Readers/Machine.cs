using System.Globalization;
using System.Runtime.InteropServices;
using System.Runtime.Intrinsics.X86;
using System.Text;

namespace KernelTls.Tool.Readers;

/// <summary>Facts about the machine that make a figure comparable, or not.</summary>
internal static class Machine
{
    /// <summary>
    /// Who makes this machine: <c>TCG</c> (qemu without hardware virtualization: times mean nothing), the name or
    /// signature of another hypervisor, or <see langword="null"/> where there is none or it cannot be told.
    /// </summary>
    public static string? Hypervisor { get; } = ReadHypervisor();

    /// <summary>The processor itself is emulated.</summary>
    public static bool IsEmulated => Hypervisor == "TCG";

    /// <summary>A whole number in /proc/sys, or <see langword="null"/>.</summary>
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

    private static string? ReadHypervisor()
    {
        const int Features = 1;
        const int HypervisorBit = 31;
        const int Signature = 0x40000000;
        if (!X86Base.IsSupported || ((X86Base.CpuId(Features, 0).Ecx >> HypervisorBit) & 1) == 0)
        {
            return null;
        }

        (_, int ebx, int ecx, int edx) = X86Base.CpuId(Signature, 0);
        string text = Encoding.ASCII.GetString(MemoryMarshal.AsBytes<int>([ebx, ecx, edx])).TrimEnd('\0', ' ');
        return text switch
        {
            "TCGTCGTCGTCG" => "TCG",
            "KVMKVMKVM" => "KVM",
            "Microsoft Hv" => "Hyper-V",
            "VMwareVMware" => "VMware",
            "XenVMMXenVMM" => "Xen",
            _ => text,
        };
    }
}
