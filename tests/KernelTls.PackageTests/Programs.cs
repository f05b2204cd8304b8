using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Starts a published application from its own folder, in the way its form requires.</summary>
internal static class Programs
{
    /// <summary>Starts a program.</summary>
    /// <param name="program">An assembly, which the machine's runtime starts, or an executable.</param>
    /// <param name="environment">The variables in addition to the test's, without its toggles.</param>
    /// <param name="arguments">The command line.</param>
    public static Application Start(string program, (string, string)[] environment, params string[] arguments)
    {
        string directory = Path.GetDirectoryName(program)!;
        return program.EndsWith(".dll", StringComparison.Ordinal)
            ? Application.Start("dotnet", directory, environment, [program, .. arguments])
            : Application.Start(program, directory, environment, arguments);
    }
}
