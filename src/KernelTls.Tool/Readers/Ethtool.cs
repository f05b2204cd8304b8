using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;

namespace KernelTls.Tool.Readers;

/// <summary>
/// Queries network devices by the ioctl SIOCETHTOOL (include/uapi/linux/ethtool.h). The queries need no privilege.
/// </summary>
/// <remarks>
/// The layouts are the same on all 64-bit Linux systems. Counts from the kernel are bounded before use.
/// </remarks>
internal sealed unsafe partial class Ethtool : IDisposable
{
    private const nuint SiocEthtool = 0x8946;
    private const uint GetStrings = 0x1b;
    private const uint GetStatistics = 0x1d;
    private const uint GetSetInfo = 0x37;
    private const uint GetFeatures = 0x3a;
    private const int StatisticsSet = 1;
    private const int FeaturesSet = 4;
    private const int StringLength = 32;
    private const int NameLength = 16;
    private const int MaxStrings = 16384;
    private const int OperationNotSupported = 95;
    private const int NoSuchDevice = 19;

    private readonly Socket _socket = new(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);

    public void Dispose() => _socket.Dispose();

    public NetworkDevice Read(string device)
    {
        try
        {
            return new NetworkDevice(device, ReadFeatures(device), ReadStatistics(device), null);
        }
        catch (IOException e)
        {
            return new NetworkDevice(device, [], new Dictionary<string, ulong>(), e.Message);
        }
    }

    private List<NetworkDevice.Feature> ReadFeatures(string device)
    {
        string[] names = ReadNames(device, FeaturesSet);
        int blocks = (names.Length + 31) / 32;
        if (blocks == 0)
        {
            return [];
        }

        // struct ethtool_gfeatures { cmd, size, { available, requested, active, never_changed }[size] }
        uint[] answer = new uint[2 + (4 * blocks)];
        (answer[0], answer[1]) = (GetFeatures, (uint)blocks);
        if (!Query(device, answer))
        {
            return [];
        }

        List<NetworkDevice.Feature> features = [];
        for (int i = 0; i < names.Length; i++)
        {
            if (names[i].StartsWith("tls-", StringComparison.Ordinal))
            {
                ReadOnlySpan<uint> block = answer.AsSpan(2 + (4 * (i / 32)), 4);
                uint bit = 1U << (i % 32);
                bool available = (block[0] & bit) != 0;
                features.Add(new NetworkDevice.Feature(names[i], available, (block[2] & bit) != 0, !available || (block[3] & bit) != 0));
            }
        }

        return features;
    }

    private SortedDictionary<string, ulong> ReadStatistics(string device)
    {
        SortedDictionary<string, ulong> statistics = new(StringComparer.Ordinal);
        string[] names = ReadNames(device, StatisticsSet);
        if (!names.Any(IsTls))
        {
            return statistics;
        }

        // struct ethtool_stats { cmd, n_stats, u64[n_stats] }. Twice the size, because a driver may have more by now.
        uint[] answer = new uint[2 + (4 * names.Length)];
        (answer[0], answer[1]) = (GetStatistics, (uint)names.Length);
        if (Query(device, answer))
        {
            for (int i = 0; i < Math.Min(names.Length, answer[1]); i++)
            {
                if (IsTls(names[i]))
                {
                    statistics[names[i]] = answer[2 + (2 * i)] | ((ulong)answer[3 + (2 * i)] << 32);
                }
            }
        }

        return statistics;
    }

    private static bool IsTls(string name) => name.Contains("tls", StringComparison.OrdinalIgnoreCase);

    /// <summary>Reads the strings of a set. Returns none if the driver does not have the set.</summary>
    private string[] ReadNames(string device, int set)
    {
        // struct ethtool_sset_info { cmd, reserved, u64 mask, u32[] counts }
        uint[] info = [GetSetInfo, 0, 1U << set, 0, 0];
        if (!Query(device, info) || info[2] == 0)
        {
            return [];
        }

        uint count = info[4];
        if (count > MaxStrings)
        {
            throw new IOException($"{device} reports {count} strings, more than the limit of {MaxStrings}.");
        }

        // struct ethtool_gstrings { cmd, set, len, char[len][32] }. Twice the size, as for statistics.
        uint[] answer = new uint[3 + (2 * (int)count * StringLength / sizeof(uint))];
        (answer[0], answer[1], answer[2]) = (GetStrings, (uint)set, count);
        if (count == 0 || !Query(device, answer))
        {
            return [];
        }

        string[] names = new string[Math.Min(count, answer[2])];
        for (int i = 0; i < names.Length; i++)
        {
            ReadOnlySpan<byte> name = MemoryMarshal.AsBytes(answer.AsSpan(3)).Slice(i * StringLength, StringLength);
            int end = name.IndexOf((byte)0);
            names[i] = Encoding.ASCII.GetString(end < 0 ? name : name[..end]);
        }

        return names;
    }

    /// <summary>Sends a query. Returns <see langword="false"/> if the driver does not support it.</summary>
    /// <exception cref="IOException">The query failed for another reason.</exception>
    private bool Query(string device, uint[] query)
    {
        fixed (uint* data = query)
        {
            // struct ifreq: the name, and a union whose first member here is a pointer.
            byte* request = stackalloc byte[40];
            new Span<byte>(request, 40).Clear();
            if (Encoding.UTF8.GetByteCount(device) >= NameLength)
            {
                throw new IOException($"'{device}' is not a valid name of a network device.");
            }

            Encoding.UTF8.GetBytes(device, new Span<byte>(request, NameLength));
            *(uint**)(request + NameLength) = data;
            if (Ioctl(_socket.SafeHandle, SiocEthtool, request) == 0)
            {
                return true;
            }

            int errno = Marshal.GetLastPInvokeError();
            return errno == OperationNotSupported
                ? false
                : throw new IOException(errno == NoSuchDevice ? "The device no longer exists." : Marshal.GetPInvokeErrorMessage(errno));
        }
    }

    [LibraryImport("libc", EntryPoint = "ioctl", SetLastError = true)]
    private static partial int Ioctl(SafeSocketHandle socket, nuint request, void* argument);
}
