using KernelTls.Tool.Output;

namespace KernelTls.Tool.Peers;

/// <summary>Copies between a connection and this process's standard streams until one of them ends.</summary>
internal sealed class InteractiveSession(
    KtlsStream stream, InteractiveSession.Settings settings, ConnectReport report, PeerSettings peer) : IDisposable
{
    private const int BufferSize = 64 * 1024;
    private readonly CancellationTokenSource _quit = new();

    /// <summary>Held from before a write until its bytes are counted.</summary>
    private readonly SemaphoreSlim _writing = new(1);

    private long _sent;
    private long _received;

    /// <summary>Contains the settings of a session.</summary>
    /// <param name="Commands">Whether lines of one letter are commands.</param>
    /// <param name="IgnoreEnd">Whether the connection stays open at the end of the input.</param>
    internal sealed record Settings(bool Commands, bool IgnoreEnd);

    private string State => $"{stream.SslProtocol} {stream.NegotiatedCipherSuite} {stream.Offload}";

    /// <summary>Runs the session and returns the exit code.</summary>
    /// <exception cref="ToolFailedException">The peer refused this client, the connection broke, or the output failed.</exception>
    public async Task<int> RunAsync(Stream input, Stream output, CancellationToken cancellationToken)
    {
        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, _quit.Token);
        Task receiving = ReceiveAsync(output, end.Token);

        // A read of standard input cannot be canceled, so it is abandoned when the peer closes.
        Task sending = Task.Run(() => SendAsync(input, end.Token), CancellationToken.None);
        string how;
        int exitCode;
        ToolFailedException? failure = null;
        try
        {
            await Task.WhenAny(receiving, sending);
            if (!receiving.IsCompleted)
            {
                await sending;
                await ReceiveRemainderAsync(receiving, end.Token);
            }

            await receiving;
            (how, exitCode) = ("closed", ExitCode.Ok);
        }
        catch (OperationCanceledException)
        {
            (how, exitCode) = cancellationToken.IsCancellationRequested
                ? ("interrupted", ExitCode.Interrupted)
                : ("quit", ExitCode.Ok);
        }
        catch (IOException e)
        {
            string words = PeerSettings.Describe(await CauseAsync(e, receiving));
            failure = peer.Refusal(words) ?? new ToolFailedException(ExitCode.Failed, $"the connection to {peer.Address} broke: {words}", e);
            (how, exitCode) = ("broken: " + words, failure.ExitCode);
        }

        // What the peer has received must be counted, even if its answer and the interrupt arrived before the thread that
        // writes went on.
        await _quit.CancelAsync();
        await _writing.WaitAsync(CancellationToken.None);
        await output.FlushAsync(CancellationToken.None);
        report.Count("closed", _sent, _received, how);
        return failure is null ? exitCode : throw failure;
    }

    public void Dispose()
    {
        _quit.Dispose();
        _writing.Dispose();
    }

    private async Task ReceiveRemainderAsync(Task receiving, CancellationToken cancellationToken)
    {
        if (settings.IgnoreEnd)
        {
            await receiving;
            return;
        }

        if (stream.CanWrite)
        {
            await stream.ShutdownAsync();
        }

        try
        {
            await receiving.WaitAsync(peer.Timeout, cancellationToken);
        }
        catch (TimeoutException)
        {
            report.Say("note", $"the peer did not close in {peer.Timeout.TotalSeconds} s (--timeout)");
            await _quit.CancelAsync();
        }
    }

    /// <summary>Returns the failure of the receiving direction if a write has failed too: it has the peer's alert.</summary>
    private async Task<Exception> CauseAsync(IOException failure, Task receiving)
    {
        try
        {
            await receiving.WaitAsync(peer.Timeout);
        }
        catch (Exception e) when (e is IOException or OperationCanceledException or TimeoutException)
        {
            return e is IOException && PeerAlert.Find(PeerSettings.Describe(e)) is not null ? e : failure;
        }

        return failure;
    }

    private async Task ReceiveAsync(Stream output, CancellationToken cancellationToken)
    {
        byte[] buffer = new byte[BufferSize];
        for (int count; (count = await stream.ReadAsync(buffer, cancellationToken)) > 0;)
        {
            _received += count;
            await output.WriteAsync(buffer.AsMemory(0, count), cancellationToken);
            await output.FlushAsync(cancellationToken);
            if (StandardOutput.IsAbandoned)
            {
                await _quit.CancelAsync();
            }
        }
    }

    private async Task SendAsync(Stream input, CancellationToken cancellationToken)
    {
        byte[] buffer = new byte[BufferSize];
        if (!settings.Commands)
        {
            for (int count; (count = await input.ReadAsync(buffer, cancellationToken)) > 0;)
            {
                await WriteAsync(buffer.AsMemory(0, count), cancellationToken);
            }

            return;
        }

        // Line by line: a line is sent unchanged, including its end, unless it is a command.
        List<byte> line = [];
        for (int count; (count = await input.ReadAsync(buffer, cancellationToken)) > 0;)
        {
            foreach (byte b in buffer.AsMemory(0, count).ToArray())
            {
                line.Add(b);
                if (b == '\n' || line.Count == BufferSize)
                {
                    await ProcessLineAsync([.. line], cancellationToken);
                    line.Clear();
                }
            }
        }

        await ProcessLineAsync([.. line], cancellationToken);
    }

    private async Task ProcessLineAsync(byte[] line, CancellationToken cancellationToken)
    {
        switch (line)
        {
            case []:
                break;
            case [(byte)'k', (byte)'\n']:
                await UpdateSendKeyAsync(requestPeerUpdate: false, cancellationToken);
                break;
            case [(byte)'K', (byte)'\n']:
                await UpdateSendKeyAsync(requestPeerUpdate: true, cancellationToken);
                break;
            case [(byte)'s', (byte)'\n']:
                report.Count("state", _sent, _received, State);
                break;
            case [(byte)'Q', (byte)'\n']:
                await _quit.CancelAsync();
                break;
            default:
                await WriteAsync(line, cancellationToken);
                break;
        }
    }

    private async Task UpdateSendKeyAsync(bool requestPeerUpdate, CancellationToken cancellationToken)
    {
        try
        {
            await stream.UpdateSendKeyAsync(requestPeerUpdate, cancellationToken);
            report.Say("keys", requestPeerUpdate ? "changed, and the peer was requested to change its own" : "changed");
        }
        catch (Exception e) when (e is KtlsRekeyException or NotSupportedException)
        {
            report.Say("keys", $"not changed: {e.Message}");
        }
    }

    private async Task WriteAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        await _writing.WaitAsync(cancellationToken);
        try
        {
            await stream.WriteAsync(data, cancellationToken);
            _sent += data.Length;
        }
        finally
        {
            _writing.Release();
        }
    }
}
