using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;
using Microsoft.CodeAnalysis;

namespace KernelTls.Weave.Tests;

/// <summary>Compiles a program of the folder Sources, and starts it with the library beside it.</summary>
internal static class WovenProgram
{
    public static Compiled Compile(string source, string name) => Compiled.From(
        File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "Sources", source)),
        name,
        o => o.WithOutputKind(OutputKind.ConsoleApplication),
        usings: false);

    /// <summary>Runs a program, which must succeed, and returns its output.</summary>
    public static async Task<string> RunAsync(
        TemporaryDirectory directory, string name, byte[] image, string[] arguments, (string, string)[] environment)
    {
        using Application application = Start(directory, name, image, arguments, environment);
        return await application.SucceedAsync();
    }

    /// <summary>Starts a program whose last argument is a certificate.</summary>
    /// <param name="directory">The directory for the program and its files.</param>
    /// <param name="name">The name of its assembly.</param>
    /// <param name="image">The assembly.</param>
    /// <param name="arguments">The arguments before the certificate.</param>
    /// <param name="environment">The toggles.</param>
    /// <param name="properties">The runtime properties, as JSON.</param>
    public static Application Start(
        TemporaryDirectory directory, string name, byte[] image, string[] arguments, (string, string)[] environment, string properties = "")
    {
        string place = Directory.CreateDirectory(directory[Guid.NewGuid().ToString("N")]).FullName;
        string program = Path.Combine(place, $"{name}.dll");
        File.WriteAllBytes(program, image);
        foreach (string file in (string[])["KernelTls.dll", "libKernelTls.Native.so"])
        {
            File.Copy(Path.Combine(AppContext.BaseDirectory, file), Path.Combine(place, file));
        }

        File.WriteAllText(Path.Combine(place, $"{name}.runtimeconfig.json"), $$"""
            {
              "runtimeOptions": {
                "framework": { "name": "Microsoft.NETCore.App", "version": "{{Environment.Version}}" },
                "configProperties": { "System.Globalization.Invariant": true{{(properties.Length == 0 ? "" : ", " + properties)}} }
              }
            }
            """);
        string certificate = Path.Combine(place, "certificate.pfx");
        File.WriteAllBytes(certificate, Certificates.Rsa.Export(X509ContentType.Pfx));
        return Application.Start(Environment.ProcessPath!, place, environment, ["exec", program, .. arguments, certificate]);
    }
}
