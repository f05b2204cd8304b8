using System.Net;
using System.Net.Sockets;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>One operation, repeated: both its ends are in this process, over loopback.</summary>
internal abstract class Scenario : IDisposable
{
    protected Scenario(Mode mode)
    {
        Mode = mode;
        Listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        Listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        Listener.Listen();
    }

    /// <summary>Operations of one round: enough to level out what happens once in a while, few enough to stay short.</summary>
    public abstract int OperationsPerRound { get; }

    /// <summary>Rounds before the hot methods have been compiled for good; more are run until the figures settle.</summary>
    public virtual int WarmUpRounds => 3;

    protected Mode Mode { get; }

    protected Socket Listener { get; }

    /// <summary>Brings about what is not measured.</summary>
    public abstract Task PrepareAsync();

    public abstract Task RunAsync(int operations);

    /// <summary>Throws unless what ran was what was to be measured. Called after each round.</summary>
    public virtual void Verify()
    {
    }

    public virtual void Dispose() => Listener.Dispose();

    /// <summary>A connection of which it is certain that it is in the mode under test: by its own words and the kernel's.</summary>
    protected async Task<ConnectionPair> OpenVerifiedAsync()
    {
        KernelCounters before = KernelCounters.Read();
        ConnectionPair pair = await ConnectionPair.OpenAsync(Listener, Mode);
        Mode.Verify(pair.Client, pair.ClientSocket);
        Mode.Verify(pair.Server, pair.ServerSocket);
        Mode.Verify(KernelCounters.Read().Since(before), connections: 1);
        return pair;
    }
}
