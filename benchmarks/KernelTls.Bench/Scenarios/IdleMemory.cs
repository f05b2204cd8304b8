using System.Net;
using System.Net.Sockets;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// What an idle connection keeps: established, one round trip of 64 bytes done, an empty read waiting at each end, as servers
/// wait. Of the process: what is resident after a full collection; of the kernel: <see cref="MemoryInUse"/>.
/// </summary>
internal sealed class IdleMemory : IDisposable
{
    private const int FirstConnections = 50;
    private const int FirstRounds = 3;
    private const int ConnectionsPerRound = 150;

    // Memory comes in pages and slabs, and a connection without TLS takes so little that it takes more of them to level that out.
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

        // What the first connections bring about once belongs to none of them: nor does what the compiler makes of their code.
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

        Measurement measured = Measurement.Of(name, mode.Name, Measurement.Bytes, null, [.. resident.Zip(kernel, (r, k) => r + k)]);

        // Heaps grow in steps: the whole is what a connection costs, the rounds show the steps.
        return measured with
        {
            PerOp = Math.Round(resident.Average() + kernel.Average()),
            Resident = Math.Round(resident.Average()),
            Kernel = Math.Round(kernel.Average()),
        };
    }

    /// <summary>The connections stay as they are: closing them is nobody's business, and the process ends.</summary>
    public void Dispose() => _listener.Dispose();

    private async Task AddAsync(int connections)
    {
        KernelCounters before = KernelCounters.Read();
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

        _mode.Verify(KernelCounters.Read().Since(before), connections);
    }

    /// <summary>Pending while the stream is idle. A plain socket's empty read may come back for bytes that were read before.</summary>
    private static async Task WaitForDataAsync(Stream stream)
    {
        for (int strayEvents = 0; strayEvents < MostStrayEvents; strayEvents++)
        {
            _ = await stream.ReadAsync(Memory<byte>.Empty);
        }
    }
}
