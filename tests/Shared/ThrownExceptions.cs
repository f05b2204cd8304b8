using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.ExceptionServices;

namespace KernelTls.Tests;

/// <summary>Records the exceptions thrown in the process, caught or not, that concern a test.</summary>
public sealed class ThrownExceptions : IDisposable
{
    private readonly ConcurrentQueue<string> _thrown = [];
    private readonly Func<StackTrace, bool> _concerns;

    /// <summary>Begins to record.</summary>
    /// <param name="concerns">The predicate, called on the throwing thread with its stack.</param>
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
