using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.ExceptionServices;

namespace KernelTls.Tests;

/// <summary>What is thrown in the process, caught or not, as far as it concerns a test.</summary>
public sealed class ThrownExceptions : IDisposable
{
    private readonly ConcurrentQueue<string> _thrown = [];
    private readonly Func<StackTrace, bool> _concerns;

    /// <param name="concerns">Asked on the thread that throws, with where that is.</param>
    public ThrownExceptions(Func<StackTrace, bool> concerns)
    {
        _concerns = concerns;
        AppDomain.CurrentDomain.FirstChanceException += Note;
    }

    public void Dispose() => AppDomain.CurrentDomain.FirstChanceException -= Note;

    public void AssertNone()
    {
        if (!_thrown.IsEmpty)
        {
            Assert.Fail(string.Join("\n\n", _thrown));
        }
    }

    private void Note(object? sender, FirstChanceExceptionEventArgs e)
    {
        StackTrace where = new();
        if (_concerns(where))
        {
            _thrown.Enqueue($"{e.Exception}\n{where}");
        }
    }
}
