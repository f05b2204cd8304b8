using System.Diagnostics;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Applications that are processes of their own, as a user starts them.</summary>
internal static class Applications
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";

    /// <summary>Starts a project of this solution, with no toggle but those in <paramref name="environment"/>.</summary>
    public static Process Start(string project, (string Name, string Value)[] environment, params string[] arguments)
    {
        string path = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", project, "release", $"{project}.dll"));
        Assert.True(File.Exists(path), path);
        ProcessStartInfo start = new("dotnet", [path, .. arguments]) { RedirectStandardInput = true, RedirectStandardOutput = true };
        start.Environment.Remove(KernelVariable);
        start.Environment.Remove(DirectVariable);
        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        return Process.Start(start)!;
    }
}
