using System.Collections.Concurrent;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tests;

/// <summary>Creates a network namespace with a loopback device whose quality can be reduced.</summary>
/// <remarks>
/// One thread runs the given work, and is in the namespace only while it does. A thread that is created by another one starts
/// in its namespace: an asynchronous operation in <see cref="RunAsync{T}"/> could start threads of the runtime there.
/// </remarks>
internal sealed partial class NetworkNamespace : IDisposable
{
    private const int CloneNewNetwork = 0x40000000;
    private readonly BlockingCollection<Action> _work = [];
    private readonly Thread _thread;
    private readonly TaskCompletionSource<SafeFileHandle> _inside = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private SafeFileHandle? _outside;

    public NetworkNamespace()
    {
        _thread = new Thread(Serve) { IsBackground = true, Name = "network namespace" };
        _thread.Start();
    }

    /// <summary>
    /// Runs <paramref name="work"/> in the namespace: sockets that it creates stay there. It must not start anything asynchronous.
    /// </summary>
    public async Task<T> RunAsync<T>(Func<T> work)
    {
        SafeFileHandle inside = await _inside.Task;
        TaskCompletionSource<T> result = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _work.Add(() =>
        {
            try
            {
                result.SetResult(RunIn(inside, work));
            }
            catch (Exception e)
            {
                result.SetException(e);
            }
        });
        return await result.Task;
    }

    /// <summary>Runs a program in the namespace. If the program fails, throws with its errors.</summary>
    public Task RunAsync(string program, params string[] arguments) => CaptureAsync(program, arguments);

    /// <summary>Does the same as <see cref="RunAsync(string, string[])"/>, and returns the program's output.</summary>
    public async Task<string> CaptureAsync(string program, params string[] arguments)
    {
        SafeFileHandle inside = await _inside.Task;
        string name = $"/proc/{Environment.ProcessId}/fd/{inside.DangerousGetHandle()}";
        using ExternalProgram running = ExternalProgram.Start("nsenter", null, [$"--net={name}", program, .. arguments]);
        return await running.SucceedAsync();
    }

    /// <summary>Returns the name of the calling thread's network namespace.</summary>
    public static string OfThread() => Of("/proc/thread-self");

    /// <summary>
    /// Returns the names of threads of this process that are in another namespace than the first thread, except the two of the runtime that
    /// recompile methods and collect garbage: any thread may create them at any time, and they create neither sockets nor threads.
    /// </summary>
    public static string[] StrayThreads()
    {
        List<string> names = [];
        foreach (string thread in Directory.GetDirectories("/proc/self/task"))
        {
            try
            {
                if (Of(thread) != Of("/proc/self"))
                {
                    names.Add(File.ReadAllText(Path.Combine(thread, "comm")).TrimEnd());
                }
            }
            catch (IOException)
            {
                // The thread has ended.
            }
        }

        names.Remove(".NET Tiered Com");
        names.Remove(".NET BGC");
        return [.. names];
    }

    public void Dispose()
    {
        _work.CompleteAdding();
        _thread.Join();
        _work.Dispose();
        _outside?.Dispose();
        if (_inside.Task.IsCompletedSuccessfully)
        {
            _inside.Task.Result.Dispose();
        }
    }

    private static string Of(string thread) => File.ResolveLinkTarget(NameOf(thread), returnFinalTarget: false)?.Name ?? throw new IOException($"There is no {thread}.");

    private static string NameOf(string thread) => Path.Combine(thread, "ns/net");

    private void Serve()
    {
        try
        {
            _outside = File.OpenHandle(NameOf("/proc/thread-self"));
            Check(Unshare(CloneNewNetwork), "make a network namespace");
            SafeFileHandle inside = File.OpenHandle(NameOf("/proc/thread-self"));
            Enter(_outside);
            _inside.SetResult(inside);
        }
        catch (Exception e)
        {
            _inside.SetException(e);
            return;
        }

        foreach (Action work in _work.GetConsumingEnumerable())
        {
            work();
        }
    }

    private T RunIn<T>(SafeFileHandle inside, Func<T> work)
    {
        Enter(inside);
        try
        {
            return work();
        }
        finally
        {
            Enter(_outside!);
        }
    }

    private static void Enter(SafeFileHandle space) => Check(SetNamespace(space, CloneNewNetwork), "enter a network namespace");

    private static void Check(int result, string what) =>
        Assert.True(result == 0, $"This process could not {what}: errno {Marshal.GetLastPInvokeError()}");

    [LibraryImport("libc", EntryPoint = "unshare", SetLastError = true)]
    private static partial int Unshare(int flags);

    [LibraryImport("libc", EntryPoint = "setns", SetLastError = true)]
    private static partial int SetNamespace(SafeFileHandle space, int kind);
}
