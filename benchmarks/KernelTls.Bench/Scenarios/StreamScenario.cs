using System.Net;
using System.Net.Sockets;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents a scenario that uses the streams of a mode directly.</summary>
internal abstract class StreamScenario : Scenario
{
    protected StreamScenario(Mode mode)
    {
        Mode = mode;
        Listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        Listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        Listener.Listen();
    }

    protected Mode Mode { get; }

    protected Socket Listener { get; }

    public override ValueTask DisposeAsync()
    {
        Listener.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>
    /// Opens a connection and verifies that it is in the mode under test, according to its stream and to the kernel.
    /// </summary>
    protected async Task<ConnectionPair> OpenVerifiedAsync()
    {
        KernelSockets before = KernelSockets.Read();
        ConnectionPair pair = await ConnectionPair.OpenAsync(Listener, Mode);
        Mode.Verify(pair.Client, pair.ClientSocket);
        Mode.Verify(pair.Server, pair.ServerSocket);
        Mode.Verify(KernelSockets.Read().Since(before), connections: 1);
        return pair;
    }
}
