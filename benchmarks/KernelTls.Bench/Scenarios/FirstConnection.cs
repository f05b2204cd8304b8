using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>The first connection of a process: connect, shake hands, 64 bytes there and back.</summary>
/// <remarks>Runs once in a process.</remarks>
internal sealed class FirstConnection(Mode mode) : StreamScenario(mode)
{
    private const int MessageSize = 64;

    private readonly byte[] _message = new byte[MessageSize];
    private readonly byte[] _received = new byte[MessageSize];
    private KernelSockets _before;
    private ConnectionPair? _pair;

    public override int OperationsPerRound => 1;

    /// <summary>Waits once: so the callers, which then wait as well, have done what that costs for the first time.</summary>
    public override async Task PrepareAsync()
    {
        _before = KernelSockets.Read();
        await Task.Yield();
    }

    public override async Task RunAsync(int operations)
    {
        _pair = await ConnectionPair.OpenAsync(Listener, Mode);
        await _pair.Client.WriteAsync(_message);
        await _pair.Server.ReadExactlyAsync(_received);
        await _pair.Server.WriteAsync(_message);
        await _pair.Client.ReadExactlyAsync(_received);
    }

    public override void Verify()
    {
        Mode.Verify(_pair!.Client, _pair.ClientSocket);
        Mode.Verify(_pair.Server, _pair.ServerSocket);
        Mode.Verify(KernelSockets.Read().Since(_before), connections: 1);
    }

    public override ValueTask DisposeAsync()
    {
        _pair?.Client.Dispose();
        _pair?.Server.Dispose();
        return base.DisposeAsync();
    }
}
