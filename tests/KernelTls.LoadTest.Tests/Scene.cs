using System.Text.Json.Nodes;
using KernelTls.LoadTest.Rehearsal;
using KernelTls.LoadTest.Report;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Runs server and client of a scenario as crank would start them, briefly and over loopback.</summary>
internal static class Scene
{
    public static string Program { get; } =
        Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", "KernelTls.LoadTest", "release", "KernelTls.LoadTest.dll"));

    /// <summary>
    /// Gets the number of concurrent requests. An emulated machine takes long for a hundred handshakes.
    /// </summary>
    public static int Concurrency { get; } = Cell.IsLab ? 4 : 100;

    public static TimeSpan Limit { get; } = Limits.Wait * 2;

    /// <summary>
    /// Returns the profile's environment. If the kernel supports only one direction, kernel TLS is not required.
    /// </summary>
    public static Dictionary<string, string> EnvironmentOf(CrankJob job)
    {
        Dictionary<string, string> environment = new(job.Environment);
        if (environment.ContainsKey("KtlsOptions__Mode") && KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2))
        {
            environment["KtlsOptions__Mode"] = nameof(KtlsMode.Preferred);
        }

        return environment;
    }

    public static CrankJob ServerOf(string scenario, string profile) =>
        CrankFile.LoadTest.Render(scenario, "server", profile, ("serverAddress", "127.0.0.1"), ("serverPort", 0));

    public static CrankJob ClientOf(string scenario, string profile, int port)
    {
        CrankJob plain = CrankFile.LoadTest.Render(scenario, "client", profile);

        // A generator ends with its time, done or not, and all its responses progress at once: on a busy machine a server that has just
        // started needs a second for the first ones. wrk gives each of its four threads as many.
        bool isGenerator = plain.Variables.ContainsKey("streams");
        List<(string, object)> changes = [("serverAddress", "127.0.0.1"), ("serverPort", port), ("warmup", 0), ("duration", isGenerator ? 3 : 0.3)];
        if (plain.Variables.TryGetValue("concurrencyPerHttpClient", out object? concurrency))
        {
            changes.Add(("concurrencyPerHttpClient", Math.Min(Concurrency, Convert.ToInt32(concurrency, null))));
        }

        if (plain.Variables.ContainsKey("connections"))
        {
            changes.Add(("connections", Math.Min(Concurrency, 8)));
        }

        return CrankFile.LoadTest.Render(scenario, "client", profile, [.. changes]);
    }

    public static LoadTestProcess Start(CrankJob job) => LoadTestProcess.Start(Program, null, EnvironmentOf(job), job.Arguments);

    public static string Text(JsonObject results, Metric metric) => (string)LoadTestProcess.ValueOf(results, metric)!;

    public static double Number(JsonObject results, Metric metric) => (double)LoadTestProcess.ValueOf(results, metric)!;
}
