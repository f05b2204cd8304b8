using System.Collections.Concurrent;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>An application that reads request bodies, each for the peer that sends it.</summary>
internal sealed class FaultObserver
{
    private readonly ConcurrentDictionary<string, (HttpFaultPeer Peer, TaskCompletionSource<(string, long)> Done)> _expected = new();
    private int _last;

    /// <summary>Returns a path for a request, and a task for the result of reading its body.</summary>
    public (string Path, Task<(string Ending, long Received)> Reading) Expect(HttpFaultPeer peer)
    {
        string path = $"/fault/{Interlocked.Increment(ref _last)}";
        TaskCompletionSource<(string, long)> done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _expected[path] = (peer, done);
        return (path, done.Task);
    }

    public void Map(WebApplication application) => application.MapPost("/fault/{id}", ObserveAsync);

    private async Task ObserveAsync(HttpContext context)
    {
        (HttpFaultPeer peer, TaskCompletionSource<(string, long)> done) = _expected[context.Request.Path];
        try
        {
            done.SetResult(await peer.ReadAsync(context.Request.Body));
        }
        catch (Exception e)
        {
            done.SetException(e);
        }
    }
}
