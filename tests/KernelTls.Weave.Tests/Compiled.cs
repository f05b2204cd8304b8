using System.Reflection;
using System.Runtime.Loader;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

namespace KernelTls.Weave.Tests;

/// <summary>Represents an assembly that a test compiled.</summary>
/// <param name="Image">The assembly.</param>
/// <param name="Symbols">Its portable symbols.</param>
internal sealed record Compiled(byte[] Image, byte[] Symbols)
{
    private const string Usings = """
        using System;
        using System.IO;
        using System.Net;
        using System.Net.Http;
        using System.Net.Security;
        using System.Threading;
        using System.Threading.Tasks;

        """;

    public static string LibraryPath { get; } = typeof(KtlsStream).Assembly.Location;

    public static Replacements Replacements { get; } = Replacements.Read(LibraryPath);

    /// <summary>Compiles C# with references to the running runtime.</summary>
    public static Compiled From(
        string source,
        string name = "Sample",
        Func<CSharpCompilationOptions, CSharpCompilationOptions>? options = null,
        ResourceDescription[]? resources = null,
        bool embedSymbols = false,
        bool usings = true)
    {
        CSharpCompilationOptions compilerOptions = new(
            OutputKind.DynamicallyLinkedLibrary, optimizationLevel: OptimizationLevel.Release, deterministic: true, allowUnsafe: true);
        CSharpCompilation compilation = CSharpCompilation.Create(
            name,
            [CSharpSyntaxTree.ParseText(SourceText.From((usings ? Usings : "") + source, System.Text.Encoding.UTF8), path: $"/_/{name}.cs")],
            ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!).Split(Path.PathSeparator)
                .Where(p => !Path.GetFileName(p).StartsWith("Microsoft.", StringComparison.Ordinal))
                .Select(p => MetadataReference.CreateFromFile(p)),
            options is null ? compilerOptions : options(compilerOptions));
        using MemoryStream image = new(), symbols = new(), version = new();
        EmitResult result = compilation.Emit(
            image,
            embedSymbols ? null : symbols,
            win32Resources: compilation.CreateDefaultWin32Resources(versionResource: true, noManifest: false, null, null),
            manifestResources: resources,
            options: new EmitOptions(debugInformationFormat: embedSymbols ? DebugInformationFormat.Embedded : DebugInformationFormat.PortablePdb));
        Assert.True(result.Success, string.Join('\n', result.Diagnostics.Where(d => d.Severity == DiagnosticSeverity.Error)));
        return new(image.ToArray(), symbols.ToArray());
    }

    public WeaveResult Weave() => AssemblyWeaver.Weave(Image, Replacements);

    /// <summary>Weaves and loads the assembly.</summary>
    public Assembly Load()
    {
        WeaveResult result = Weave();
        Assert.Empty(result.Problems);
        return Load(result.Image!, Symbols);
    }

    public static Assembly Load(byte[] image, byte[]? symbols = null)
    {
        AssemblyLoadContext context = new(null);
        context.Resolving += (_, name) => AssemblyLoadContext.Default.LoadFromAssemblyName(name);
        return context.LoadFromStream(new MemoryStream(image), symbols is { Length: > 0 } ? new MemoryStream(symbols) : null);
    }

    /// <summary>Runs the static method Run of the class Sample of a loaded assembly.</summary>
    public static object? Run(Assembly assembly, params object?[] arguments) =>
        assembly.GetType("Sample", throwOnError: true)!.GetMethod("Run")!
            .Invoke(null, BindingFlags.DoNotWrapExceptions, null, arguments, null);
}
