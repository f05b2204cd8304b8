namespace KernelTls.Soak;

/// <summary>
/// The base class of clients, which run one operation after the other during a round. Nothing of a client remains after
/// the round.
/// </summary>
internal abstract class SoakClient(SoakContext context, int seed) : IAsyncDisposable
{
    /// <summary>The time limit of any wait in an operation. A machine under load is far from it.</summary>
    public static readonly TimeSpan Limit = TimeSpan.FromSeconds(60);

    protected SoakContext Context { get; } = context;

    protected Random Random { get; } = new(seed);

    /// <summary>Gets the name under which its operations are counted.</summary>
    protected abstract string Kind { get; }

    /// <summary>Gets the number of connections that the client keeps between rounds.</summary>
    public virtual int KeptConnections => 0;

    /// <summary>Runs operations until the round is over. The end of a round does not cancel an operation.</summary>
    public async Task RunAsync(CancellationToken over)
    {
        while (!over.IsCancellationRequested)
        {
            using CancellationTokenSource limit = new(Limit);
            try
            {
                await OperateAsync(limit.Token).WaitAsync(2 * Limit, CancellationToken.None);
                Context.Sabotage.Act();
                Context.Tally.Count(Kind);
            }
            catch (Exception e) when (IsHang(e, limit))
            {
                Report(Finding.Hang, $"{Kind} waited {Limit.TotalSeconds} s: {e}");
            }
            catch (InvalidDataException e)
            {
                Report(Finding.Corruption, $"{Kind}: {e}");
            }
            catch (Exception e)
            {
                Report(Finding.Failure, $"{Kind}: {e}");
            }

            await RestAsync(over);
        }

        await CloseRoundAsync();
    }

    /// <summary>Closes what the client keeps between rounds.</summary>
    public ValueTask DisposeAsync() => CloseAsync();

    /// <summary>Performs one operation and verifies its result.</summary>
    protected abstract Task OperateAsync(CancellationToken limit);

    /// <summary>Closes everything.</summary>
    protected virtual ValueTask CloseAsync() => ValueTask.CompletedTask;

    /// <summary>Closes what lasts for one round.</summary>
    protected virtual ValueTask CloseRoundAsync() => ValueTask.CompletedTask;

    /// <summary>Discards a failed connection.</summary>
    protected virtual void Abandon()
    {
    }

    private static bool IsHang(Exception e, CancellationTokenSource limit) =>
        e is TimeoutException || (limit.IsCancellationRequested && e is OperationCanceledException);

    private void Report(Finding finding, string what)
    {
        Context.Findings.Add(finding, what);
        Abandon();
    }

    private async Task RestAsync(CancellationToken over)
    {
        try
        {
            await Context.Pacer.WaitAsync(Random, over);
        }
        catch (OperationCanceledException)
        {
            // The round is over.
        }
    }
}
