using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace KernelTls.Tests;

/// <summary>Creates a network namespace with a loopback device whose quality can be reduced.</summary>
/// <remarks>
/// The namespace belongs to one thread, which runs the given work: sockets created on it, and the programs that it
/// starts, stay in the namespace.
/// </remarks>
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

    /// <summary>Runs a program in the namespace. If the program fails, throws with its errors.</summary>
    public Task RunAsync(string program, params string[] arguments) => CaptureAsync(program, arguments);

    /// <summary>Does the same as <see cref="RunAsync(string, string[])"/>, and returns the program's output.</summary>
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
