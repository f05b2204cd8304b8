using System.Diagnostics;
using System.Security.Cryptography;

namespace KernelTls.Fuzz;

/// <summary>Tests inputs until the time is over or one fails, which is then reduced and stored.</summary>
internal sealed class FuzzRun(FuzzTarget target, int seed, DirectoryInfo crashes)
{
    private static readonly TimeSpan s_shrinkLimit = TimeSpan.FromSeconds(20);

    /// <summary>Runs the target.</summary>
    /// <returns>The exit code: 0 if no input failed.</returns>
    public async Task<int> RunAsync(TimeSpan duration)
    {
        Console.WriteLine($"{target.Name}: --seed {seed}");
        Random random = new(seed);
        long inputs = 0;
        for (Stopwatch clock = Stopwatch.StartNew(); clock.Elapsed < duration; inputs++)
        {
            byte[] input = target.Create(random);
            if (await FailureOfAsync(input) is { } failure)
            {
                Console.WriteLine($"input {inputs} fails, after {clock.Elapsed.TotalSeconds:0.0} s");
                return Keep(await ShrinkAsync(input), failure);
            }
        }

        Console.WriteLine($"{inputs} inputs in {duration.TotalSeconds} s");
        return 0;
    }

    /// <summary>Tests the input in a file.</summary>
    /// <returns>The exit code: 0 if the input does not fail.</returns>
    public async Task<int> ReplayAsync(FileInfo file)
    {
        Exception? failure = await FailureOfAsync(await File.ReadAllBytesAsync(file.FullName));
        Console.WriteLine(failure?.ToString() ?? $"{file} does not fail");
        return failure is null ? 0 : 1;
    }

    private int Keep(byte[] input, Exception failure)
    {
        crashes.Create();
        string name = Path.Combine(crashes.FullName, "crash-" + Convert.ToHexStringLower(SHA256.HashData(input))[..16]);
        File.WriteAllBytes(name, input);
        Console.WriteLine(failure);
        Console.WriteLine($"Test unit written to {name}");
        return 1;
    }

    /// <summary>
    /// Returns the failure of an input. Any exception is one: a target handles those that it expects.
    /// </summary>
    private async Task<Exception?> FailureOfAsync(byte[] input)
    {
        try
        {
            await target.TryAsync(input);
            return null;
        }
        catch (Exception e)
        {
            return e;
        }
    }

    /// <summary>Removes parts and sets bytes to zero as long as the input still fails.</summary>
    private async Task<byte[]> ShrinkAsync(byte[] input)
    {
        Stopwatch clock = Stopwatch.StartNew();
        for (int length = input.Length; length > 0 && clock.Elapsed < s_shrinkLimit; length /= 2)
        {
            for (int at = 0; at + length <= input.Length && clock.Elapsed < s_shrinkLimit;)
            {
                byte[] shorter = [.. input[..at], .. input[(at + length)..]];
                byte[] simpler = [.. input];
                simpler.AsSpan(at, length).Clear();
                if (await FailureOfAsync(shorter) is not null)
                {
                    input = shorter;
                    continue;
                }

                input = !simpler.AsSpan().SequenceEqual(input) && await FailureOfAsync(simpler) is not null ? simpler : input;
                at += length;
            }
        }

        return input;
    }
}
