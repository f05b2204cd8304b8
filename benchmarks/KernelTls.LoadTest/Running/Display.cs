using System.Diagnostics;
using Spectre.Console;

namespace KernelTls.LoadTest.Running;

/// <summary>Shows progress over time, with a bar on a terminal and with a line otherwise.</summary>
internal static class Display
{
    private static readonly TimeSpan s_step = TimeSpan.FromMilliseconds(100);

    public static async Task ShowAsync(string what, double seconds, Task phase)
    {
        if (Console.IsOutputRedirected)
        {
            await Console.Out.WriteLineAsync($"{what} for {seconds} s");
            await phase;
            return;
        }

        await AnsiConsole.Progress().StartAsync(async context =>
        {
            ProgressTask bar = context.AddTask(what, maxValue: Math.Max(seconds, s_step.TotalSeconds));
            for (long start = Stopwatch.GetTimestamp(); !phase.IsCompleted;)
            {
                await Task.WhenAny(phase, Task.Delay(s_step));
                bar.Value = Stopwatch.GetElapsedTime(start).TotalSeconds;
            }

            bar.Value = bar.MaxValue;
        });
        await phase;
    }
}
