using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Starts what was published, from its own folder, as its form wants it.</summary>
internal static class Programs
{
    /// <param name="program">An assembly, which the machine's runtime starts, or a program that starts itself.</param>
    /// <param name="environment">In addition to the test's, without its toggles.</param>
    /// <param name="arguments">The command line.</param>
    public static Application Start(string program, (string, string)[] environment, params string[] arguments)
    {
        string directory = Path.GetDirectoryName(program)!;
        return program.EndsWith(".dll", StringComparison.Ordinal)
            ? Application.Start("dotnet", directory, environment, [program, .. arguments])
            : Application.Start(program, directory, environment, arguments);
    }
}
