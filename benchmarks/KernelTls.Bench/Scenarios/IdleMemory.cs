using System.Net;
using System.Net.Sockets;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Measures the memory of an idle connection. The connection is established and has completed one round trip of 64
/// bytes. An empty read waits at each end, as it does in servers. The memory of the process is its resident memory
/// after a full collection. For the memory of the kernel, see <see cref="MemoryInUse"/>.
/// </summary>
internal sealed class IdleMemory : IDisposable
{
    private const int FirstConnections = 50;
    private const int FirstRounds = 3;
    private const int ConnectionsPerRound = 150;

    // Memory is allocated in pages and slabs. A connection without TLS takes so little memory that more connections are
    // necessary to average out these steps.
    private const int PlainConnectionsPerRound = 500;
    private const int Rounds = 3;
    private const int MessageSize = 64;
    private const int MostStrayEvents = 4;

    private readonly Mode _mode;
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly List<(ConnectionPair Pair, Task ClientReads, Task ServerReads)> _idle = [];
    private readonly byte[] _message = new byte[MessageSize];

    private IdleMemory(Mode mode)
    {
        _mode = mode;
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen();
    }

    public static async Task<Measurement> MeasureAsync(string name, Mode mode)
    {
        using IdleMemory memory = new(mode);

        // Costs that only the first connections cause do not count for any connection. The same applies to the memory
        // that the compiler uses for their code.
        for (int i = 0; i < FirstRounds; i++)
        {
            await memory.AddAsync(FirstConnections).InTime($"the first {FirstConnections} connections");
            await Task.Delay(Meter.Compilation);
        }

        List<double> resident = [];
        List<double> kernel = [];
        int connections = mode.Name == ModeTable.Floor ? PlainConnectionsPerRound : ConnectionsPerRound;
        MemoryInUse before = MemoryInUse.Read();
        for (int i = 0; i < Rounds; i++)
        {
            await memory.AddAsync(connections).InTime($"{connections} connections");
            MemoryInUse after = MemoryInUse.Read();
            resident.Add((after.Resident - before.Resident) / (2.0 * connections));
            kernel.Add((after.Kernel - before.Kernel) / (2.0 * connections));
            before = after;
        }

        if (memory._idle.Exists(idle => idle.ClientReads.IsCompleted || idle.ServerReads.IsCompleted))
        {
            throw new BenchFailedException($"{mode.Name}: a connection is not idle, its empty read came back");
        }

        return Measurement.OfMemory(name, mode.Name, resident, kernel);
    }

    /// <summary>
    /// Closes only the listener. The connections stay open until the process ends, because closing them is not
    /// measured.
    /// </summary>
    public void Dispose() => _listener.Dispose();

    private async Task AddAsync(int connections)
    {
        KernelSockets before = KernelSockets.Read();
        for (int i = 0; i < connections; i++)
        {
            ConnectionPair pair = await ConnectionPair.OpenAsync(_listener, _mode);
            byte[] received = new byte[MessageSize];
            await pair.Client.WriteAsync(_message);
            await pair.Server.ReadExactlyAsync(received);
            await pair.Server.WriteAsync(_message);
            await pair.Client.ReadExactlyAsync(received);
            _mode.Verify(pair.Client, pair.ClientSocket);
            _mode.Verify(pair.Server, pair.ServerSocket);
            _idle.Add((pair, WaitForDataAsync(pair.Client), WaitForDataAsync(pair.Server)));
        }

        _mode.Verify(KernelSockets.Read().Since(before), connections);
    }

    /// <summary>
    /// Waits for data. The task is pending while the stream is idle. An empty read of a plain socket may complete
    /// because of bytes that were already read.
    /// </summary>
    private static async Task WaitForDataAsync(Stream stream)
    {
        for (int strayEvents = 0; strayEvents < MostStrayEvents; strayEvents++)
        {
            _ = await stream.ReadAsync(Memory<byte>.Empty);
        }
    }
}
