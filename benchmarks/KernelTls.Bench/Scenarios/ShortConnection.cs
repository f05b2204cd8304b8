using System.Diagnostics;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Connects, performs a handshake, sends 64 bytes in each direction, and closes the connection in an orderly way.
/// </summary>
internal sealed class ShortConnection : StreamScenario
{
    private const int MessageSize = 64;

    private readonly bool _resumes;
    private readonly int _certificateSize;
    private readonly byte[] _message = new byte[MessageSize];
    private readonly byte[] _clientBuffer = new byte[MessageSize];
    private readonly byte[] _serverBuffer = new byte[MessageSize];
    private long _bytesOfFullHandshake;
    private long _bytesOfLast;
    private KernelSockets _before;
    private int _connections;

    public ShortConnection(Mode mode, bool resumes, BenchCertificates certificates)
        : base(mode)
    {
        _resumes = resumes;
        _certificateSize = certificates.Server.RawDataMemory.Length;
    }

    public override int OperationsPerRound => 12;

    public override int WarmUpRounds => 8;

    public override async Task PrepareAsync()
    {
        ConnectionPair first = await OpenVerifiedAsync();
        await TalkAsync(first);
        _bytesOfFullHandshake = first.BytesOnTheWire();
        await first.CloseAsync(Mode, _clientBuffer);
    }

    public override async Task RunAsync(int operations)
    {
        _before = KernelSockets.Read();
        _connections = operations;
        long begun = Stopwatch.GetTimestamp();
        for (int i = 0; i < operations; i++)
        {
            ConnectionPair pair = await ConnectionPair.OpenAsync(Listener, Mode);
            await TalkAsync(pair);
            _bytesOfLast = pair.BytesOnTheWire();
            await pair.CloseAsync(Mode, _clientBuffer);
            KeepTime(ref begun);
        }
    }

    /// <summary>
    /// Returns whether a handshake resumed a session. The server sends no certificate in such a handshake.
    /// </summary>
    public override void Verify()
    {
        Mode.Verify(KernelSockets.Read().Since(_before), _connections);
        bool resumed = _bytesOfLast + _certificateSize <= _bytesOfFullHandshake;
        if (Mode.HasHandshake && resumed != _resumes)
        {
            throw new BenchFailedException(
                $"{Mode.Name} was {(_resumes ? "" : "not ")}to resume: the server's first connection took {_bytesOfFullHandshake} bytes, this one {_bytesOfLast}");
        }
    }

    private async Task TalkAsync(ConnectionPair pair)
    {
        await pair.Client.WriteAsync(_message);
        await pair.Server.ReadExactlyAsync(_serverBuffer);
        await pair.Server.WriteAsync(_message);
        await pair.Client.ReadExactlyAsync(_clientBuffer);
    }
}
