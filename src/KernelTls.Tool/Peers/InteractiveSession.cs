namespace KernelTls.Tool.Peers;

/// <summary>Copies between a connection and this process's standard streams until one of them ends.</summary>
internal sealed class InteractiveSession(
    KtlsStream stream, InteractiveSession.Manner manner, ConnectReport report, TimeSpan lastWords) : IDisposable
{
    private const int BufferSize = 64 * 1024;
    private readonly CancellationTokenSource _quit = new();
    private long _sent;
    private long _received;

    /// <param name="Commands">Lines of one letter are commands.</param>
    /// <param name="IgnoreEnd">The end of the input is not the end.</param>
    internal sealed record Manner(bool Commands, bool IgnoreEnd);

    private string State => $"{stream.SslProtocol} {stream.NegotiatedCipherSuite} {stream.Offload}";

    /// <summary>Returns the exit code.</summary>
    public async Task<int> RunAsync(Stream input, Stream output, CancellationToken cancellationToken)
    {
        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, _quit.Token);
        Task receiving = ReceiveAsync(output, end.Token);

        // A read of standard input cannot be cancelled: when the peer has ended, it is left behind.
        Task sending = Task.Run(() => SendAsync(input, end.Token), CancellationToken.None);
        string how;
        int exitCode;
        try
        {
            await Task.WhenAny(receiving, sending);
            if (!receiving.IsCompleted)
            {
                await sending;
                await HearOutAsync(receiving, end.Token);
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
            (how, exitCode) = ("broken: " + PeerSettings.Describe(e), ExitCode.Failed);
        }

        await output.FlushAsync(CancellationToken.None);
        report.Count("closed", _sent, _received, how);
        return exitCode;
    }

    public void Dispose() => _quit.Dispose();

    private async Task HearOutAsync(Task receiving, CancellationToken cancellationToken)
    {
        if (manner.IgnoreEnd)
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
            await receiving.WaitAsync(lastWords, cancellationToken);
        }
        catch (TimeoutException)
        {
            report.Say("note", $"the peer did not close in {lastWords.TotalSeconds} s (--timeout)");
            await _quit.CancelAsync();
        }
    }

    private async Task ReceiveAsync(Stream output, CancellationToken cancellationToken)
    {
        byte[] buffer = new byte[BufferSize];
        for (int count; (count = await stream.ReadAsync(buffer, cancellationToken)) > 0;)
        {
            _received += count;
            await output.WriteAsync(buffer.AsMemory(0, count), cancellationToken);
            await output.FlushAsync(cancellationToken);
        }
    }

    private async Task SendAsync(Stream input, CancellationToken cancellationToken)
    {
        byte[] buffer = new byte[BufferSize];
        if (!manner.Commands)
        {
            for (int count; (count = await input.ReadAsync(buffer, cancellationToken)) > 0;)
            {
                await WriteAsync(buffer.AsMemory(0, count), cancellationToken);
            }

            return;
        }

        // Line by line. A line is sent as it is, with its end, unless it is a command.
        List<byte> line = [];
        for (int count; (count = await input.ReadAsync(buffer, cancellationToken)) > 0;)
        {
            foreach (byte b in buffer.AsMemory(0, count).ToArray())
            {
                line.Add(b);
                if (b == '\n' || line.Count == BufferSize)
                {
                    await TakeAsync([.. line], cancellationToken);
                    line.Clear();
                }
            }
        }

        await TakeAsync([.. line], cancellationToken);
    }

    private async Task TakeAsync(byte[] line, CancellationToken cancellationToken)
    {
        switch (line)
        {
            case []:
                break;
            case [(byte)'k', (byte)'\n']:
                await UpdateKeysAsync(requestPeerUpdate: false, cancellationToken);
                break;
            case [(byte)'K', (byte)'\n']:
                await UpdateKeysAsync(requestPeerUpdate: true, cancellationToken);
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

    private async Task UpdateKeysAsync(bool requestPeerUpdate, CancellationToken cancellationToken)
    {
        try
        {
            await stream.UpdateKeysAsync(requestPeerUpdate, cancellationToken);
            report.Say("keys", requestPeerUpdate ? "changed, and the peer was asked to change its own" : "changed");
        }
        catch (Exception e) when (e is KtlsRekeyException or NotSupportedException)
        {
            report.Say("keys", $"not changed: {e.Message}");
        }
    }

    private async Task WriteAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        await stream.WriteAsync(data, cancellationToken);
        _sent += data.Length;
    }
}
