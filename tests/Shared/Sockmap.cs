using System.Net.Sockets;
using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>Creates a BPF sockmap with bpf(2) alone: a map with sockets and without a program (linux/bpf.h).</summary>
internal sealed class Sockmap : IDisposable
{
    private const int MapCreate = 0;
    private const int MapUpdateElement = 2;
    private const int TypeSockmap = 15;
    private readonly int _map;

    private Sockmap(int map) => _map = map;

    /// <summary>Creates a sockmap. If the process may not, the test is skipped, or fails in a lab cell.</summary>
    public static Sockmap Create()
    {
        int map = Call(MapCreate, [TypeSockmap, sizeof(uint), sizeof(uint), 4, 0, 0, 0, 0, 0, 0]);
        if (map < 0)
        {
            int error = Marshal.GetLastPInvokeError();
            Assert.False(Cell.IsLab, $"no sockmap in the cell: errno {error}");
            Assert.Skip($"no sockmap here: errno {error}");
        }

        return new Sockmap(map);
    }

    /// <summary>Adds a socket under a key from 0 to 3. Returns 0 or the errno.</summary>
    public unsafe int Add(int key, Socket socket)
    {
        int descriptor = (int)socket.Handle;
        ulong keyAddress = (ulong)&key;
        ulong valueAddress = (ulong)&descriptor;
        return Call(
            MapUpdateElement,
            [(uint)_map, 0, (uint)keyAddress, (uint)(keyAddress >> 32), (uint)valueAddress, (uint)(valueAddress >> 32), 0, 0]) == 0
            ? 0
            : Marshal.GetLastPInvokeError();
    }

    public void Dispose() => new SafeSocketHandle(_map, ownsHandle: true).Dispose();

    private static unsafe int Call(int command, ReadOnlySpan<uint> attributes)
    {
        long bpf = RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? 280 : 321;
        fixed (uint* bytes = attributes)
        {
            return (int)SystemCall(bpf, command, bytes, attributes.Length * sizeof(uint));
        }
    }

    [DllImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static extern unsafe long SystemCall(long number, long command, void* attributes, long size);
}
