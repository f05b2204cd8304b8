using System.Diagnostics;

namespace KernelTls.Tests;

/// <summary>Runs tests of an assembly in a process of their own: for what a runtime decides once, or for what earlier tests leave behind.</summary>
internal static class OwnProcess
{
    /// <summary>Runs an explicit test, and asserts that it passes.</summary>
    /// <param name="tests">The class.</param>
    /// <param name="method">The name of the test.</param>
    /// <param name="environment">The variables that are set in addition.</param>
    public static async Task RunAsync(Type tests, string method, params (string Name, string Value)[] environment)
    {
        string said = await RunAsync(tests, ["-explicit", "only", "-method", $"{tests.FullName}.{method}"], environment);
        Assert.Contains("Total: 1,", said, StringComparison.Ordinal);
    }

    /// <summary>Runs all tests of a class that are not explicit, and asserts that they pass.</summary>
    /// <param name="tests">The class.</param>
    /// <param name="environment">The variables that are set in addition.</param>
    public static async Task RunAsync(Type tests, params (string Name, string Value)[] environment)
    {
        string said = await RunAsync(tests, ["-class", tests.FullName!], environment);
        Assert.DoesNotContain("Total: 0,", said, StringComparison.Ordinal);
    }

    private static async Task<string> RunAsync(Type tests, string[] arguments, (string Name, string Value)[] environment)
    {
        // A self-contained program is its own host (eng/musl).
        string host = Environment.ProcessPath!;
        string[] assembly = Path.GetFileNameWithoutExtension(host) == "dotnet" ? [tests.Assembly.Location] : [];
        ProcessStartInfo start = new(host, [.. assembly, .. arguments]) { RedirectStandardOutput = true };
        // OpenSslCheck would probe the kernel before the test changes what the probe finds.
        start.Environment.Remove("KTLS_OPENSSL");
        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        using Process run = Process.Start(start)!;
        string said = await run.StandardOutput.ReadToEndAsync(TestContext.Current.CancellationToken)
            .Within(4 * Limits.Wait, $"{tests.Name} in a process of its own");
        await run.WaitForExitAsync(TestContext.Current.CancellationToken).InTime("the tests' process to end");
        Assert.True(run.ExitCode == 0, said);
        return said;
    }
}
