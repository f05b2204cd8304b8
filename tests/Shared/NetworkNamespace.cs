using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>
/// A network of its own, with a loopback that can be made as bad as one likes. It belongs to one thread, which lends itself:
/// sockets made on it, and the programs it starts, are in the namespace for good.
/// </summary>
internal sealed partial class NetworkNamespace : IDisposable
{
    private const int CloneNewNetwork = 0x40000000;
    private readonly BlockingCollection<Action> _work = [];
    private readonly Thread _thread;
    private int _failure;

    public NetworkNamespace()
    {
        _thread = new Thread(Serve) { IsBackground = true, Name = "network namespace" };
        _thread.Start();
    }

    /// <summary>Runs <paramref name="work"/> on the namespace's thread.</summary>
    public Task<T> RunAsync<T>(Func<T> work)
    {
        TaskCompletionSource<T> result = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _work.Add(() =>
        {
            try
            {
                Assert.True(_failure == 0, $"no network namespace could be made: errno {_failure}");
                result.SetResult(work());
            }
            catch (Exception e)
            {
                result.SetException(e);
            }
        });
        return result.Task;
    }

    /// <summary>Runs a program in the namespace; fails with its errors where it fails.</summary>
    public Task RunAsync(string program, params string[] arguments) => CaptureAsync(program, arguments);

    /// <summary>As <see cref="RunAsync(string, string[])"/>, and returns what it prints.</summary>
    public Task<string> CaptureAsync(string program, params string[] arguments) => RunAsync(() =>
    {
        ProcessStartInfo start = new(program, arguments) { RedirectStandardError = true, RedirectStandardOutput = true };
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = process.StandardOutput.ReadToEnd();
        Assert.True(process.WaitForExit(Limits.Wait), $"{program} did not end in {Limits.Wait.TotalSeconds} s");
        Assert.True(process.ExitCode == 0, $"{program} {string.Join(' ', arguments)}: {errors.GetAwaiter().GetResult()}");
        return output;
    });

    public void Dispose()
    {
        _work.CompleteAdding();
        _thread.Join();
        _work.Dispose();
    }

    private void Serve()
    {
        _failure = Unshare(CloneNewNetwork) == 0 ? 0 : Marshal.GetLastPInvokeError();
        foreach (Action work in _work.GetConsumingEnumerable())
        {
            work();
        }
    }

    [LibraryImport("libc", EntryPoint = "unshare", SetLastError = true)]
    private static partial int Unshare(int flags);
}
