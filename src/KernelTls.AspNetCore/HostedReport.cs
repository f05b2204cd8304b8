using Microsoft.Extensions.Hosting;

namespace KernelTls.AspNetCore;

/// <summary>Writes to the log what is noticed while the host runs.</summary>
/// <remarks>
/// It is not a <see cref="BackgroundService"/>. A host whose start fails takes a canceled service for one that failed. It would log it as
/// critical beside the real error.
/// </remarks>
internal abstract class HostedReport : IHostedService, IDisposable
{
    private readonly CancellationTokenSource _stopping = new();
    private Task _written = Task.CompletedTask;

    public Task StartAsync(CancellationToken cancellationToken)
    {
        _written = WriteUntilStoppedAsync();
        return Task.CompletedTask;
    }

    public async Task StopAsync(CancellationToken cancellationToken)
    {
        await _stopping.CancelAsync().ConfigureAwait(false);
        await _written.ConfigureAwait(false);
    }

    public void Dispose() => _stopping.Cancel();

    /// <summary>Waits for what the report is about, and logs it.</summary>
    protected abstract Task WriteAsync(CancellationToken stopping);

    private async Task WriteUntilStoppedAsync()
    {
        try
        {
            await WriteAsync(_stopping.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (_stopping.IsCancellationRequested)
        {
        }
    }
}
