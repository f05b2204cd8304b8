using System.Collections.Concurrent;
using System.Diagnostics.Tracing;
using KernelTls.Tests;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;

namespace KernelTls.LoadTest.Tests;

/// <summary>Listens to a process as crank's agent does: to the event source "Benchmarks", through EventPipe.</summary>
internal sealed class Agent : IDisposable
{
    private static readonly string[] s_explanation = ["aggregate", "reduce", "shortDescription", "longDescription", "format"];

    private readonly EventPipeSession _session;
    private readonly Task _listening;

    private Agent(EventPipeSession session)
    {
        _session = session;
        _listening = Limits.Blocking(Listen);
    }

    /// <summary>Gets the last measurement of each name.</summary>
    public ConcurrentDictionary<string, object> Measurements { get; } = new();

    /// <summary>Gets the names of all measurements received.</summary>
    public ConcurrentQueue<string> Heard { get; } = new();

    /// <summary>Gets the metadata by name: aggregate, reduce, short description, long description, format.</summary>
    public ConcurrentDictionary<string, string[]> Metadata { get; } = new();

    /// <summary>Gets the measurements that were not preceded by metadata.</summary>
    public ConcurrentQueue<string> Unexplained { get; } = new();

    /// <summary>Attaches to a process.</summary>
    /// <param name="processId">The process, whose runtime may not have started yet.</param>
    /// <param name="isSuspended">Whether the process waits for a listener, so that nothing is missed.</param>
    public static async Task<Agent> AttachAsync(int processId, bool isSuspended)
    {
        DiagnosticsClient client = new(processId);
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; ;)
        {
            try
            {
                EventPipeSession session = client.StartEventPipeSession(
                    [new EventPipeProvider("Benchmarks", EventLevel.Verbose)], requestRundown: false);
                if (isSuspended)
                {
                    client.ResumeRuntime();
                }

                return new Agent(session);
            }
            catch (ServerNotAvailableException) when (Environment.TickCount64 < deadline)
            {
                await timer.WaitForNextTickAsync();
            }
        }
    }

    /// <summary>Waits until the process has ended.</summary>
    public Task EndAsync() => _listening.InTime("the events to end");

    /// <summary>Stops listening, as the agent does before it stops a server.</summary>
    public async Task DetachAsync()
    {
        await _session.StopAsync(CancellationToken.None).InTime("the session to end");
        await EndAsync();
    }

    public async Task UntilAsync(Func<bool> condition, string what)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; !condition();)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for {what}: {string.Join(' ', Measurements)}");
            await timer.WaitForNextTickAsync();
        }
    }

    public void Dispose() => _session.Dispose();

    private void Listen()
    {
        using EventPipeEventSource source = new(_session.EventStream);
        source.Dynamic.All += Hear;
        source.Process();
    }

    private void Hear(TraceEvent heard)
    {
        if (heard.ProviderName != "Benchmarks")
        {
            return;
        }

        if (heard.EventName.StartsWith("Measure", StringComparison.Ordinal))
        {
            string name = (string)heard.PayloadByName("name");
            if (!Metadata.ContainsKey(name))
            {
                Unexplained.Enqueue(name);
            }

            Measurements[name] = heard.PayloadByName("value");
            Heard.Enqueue(name);
        }
        else if (heard.EventName == "Metadata")
        {
            Metadata[(string)heard.PayloadByName("name")] =
                [.. s_explanation.Select(n => (string)heard.PayloadByName(n))];
        }
    }
}
