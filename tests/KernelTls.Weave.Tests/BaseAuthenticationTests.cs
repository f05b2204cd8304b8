using System.Collections.Immutable;
using System.Reflection;
using KernelTls.Analyzers;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CodeActions;
using Microsoft.CodeAnalysis.CodeFixes;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Diagnostics;

namespace KernelTls.Weave.Tests;

/// <summary>
/// Tests the warning about a KtlsStream that authenticates through SslStream. The lines of the sources that must be warned of end with
/// <c>// here</c>.
/// </summary>
public class BaseAuthenticationTests
{
    private const string Head = """
        using System;
        using System.Collections.Generic;
        using System.IO;
        using System.Net.Security;
        using System.Threading;
        using System.Threading.Tasks;
        using KernelTls;

        """;

    public static TheoryData<string> Sources =>
    [
        """
        class Sample { async Task Run(Stream inner) {
            SslStream stream = new KtlsStream(inner);
            await stream.AuthenticateAsClientAsync("host"); // here
            await ((KtlsStream)stream).AuthenticateAsClientAsync("host");
            await new SslStream(inner).AuthenticateAsClientAsync("host");
            KtlsStream other = new(inner);
            await other.AuthenticateAsClientAsync("host");
            await ((SslStream)other).AuthenticateAsClientAsync("host"); // here
            stream.AuthenticateAsServer(new SslServerAuthenticationOptions()); // here
            stream.BeginAuthenticateAsClient("host", null, null); // here
            stream.Write(new byte[1]);
        } }
        """,
        """
        class Sample { void Run(Stream inner, bool kernel) {
            using SslStream chosen = kernel ? new KtlsStream(inner) : new SslStream(inner);
            chosen.AuthenticateAsClient("host"); // here
            SslStream copy = chosen;
            copy?.AuthenticateAsClient("host"); // here
            SslStream plain = new(inner);
            plain.AuthenticateAsClient("host");
            SslStream either = plain;
            either = kernel switch { true => new SslStream(inner), false => copy };
            either.AuthenticateAsClient("host"); // here
        } }
        """,
        """
        class Sample {
            private readonly SslStream _stream;
            private readonly SslStream _plain = new(Stream.Null);
            private SslStream Shown => _stream;
            public Sample(Stream inner) => _stream = new KtlsStream(inner);
            Task Run() => _stream.AuthenticateAsClientAsync("host"); // here
            Task Plain() => _plain.AuthenticateAsClientAsync("host");
            Task ByProperty() => Shown.AuthenticateAsClientAsync("host"); // here
            class Nested { Task Run(Sample sample) => sample._stream.AuthenticateAsClientAsync("host"); } // here
        }
        """,
        """
        class Sample {
            static SslStream Create(Stream inner) => new KtlsStream(inner);
            static async Task<SslStream> ConnectAsync() { await Task.Yield(); return Create(Stream.Null); }
            static SslStream Plain(Stream inner) { SslStream Local() => new(inner); return Local(); }
            static async Task Shake(SslStream stream) => await stream.AuthenticateAsClientAsync("host"); // here
            async Task Run(Stream inner, object any) {
                await Create(inner).AuthenticateAsClientAsync("host"); // here
                SslStream connected = await ConnectAsync();
                await connected.AuthenticateAsClientAsync("host"); // here
                await Plain(inner).AuthenticateAsClientAsync("host");
                await Shake(new KtlsStream(inner));
                Func<SslStream> make = () => new KtlsStream(inner);
                if (connected is SslStream same) { await same.AuthenticateAsClientAsync("host"); } // here
            }
        }
        """,
        """
        SslStream stream = new KtlsStream(Stream.Null);
        await stream.AuthenticateAsClientAsync("host"); // here
        """,
    ];

    [Theory]
    [MemberData(nameof(Sources))]
    public async Task The_call_is_warned_of_and_mended(string source)
    {
        using AdhocWorkspace workspace = new();
        Document document = Open(workspace, Head + source);

        ImmutableArray<Diagnostic> warnings = await WarningsAsync(document);

        Assert.Equal(LinesOf(Head + source), warnings.Select(w => w.Location.GetLineSpan().StartLinePosition.Line).Order());
        Assert.All(warnings, w => Assert.Contains("AuthenticateAs", w.GetMessage(), StringComparison.Ordinal));
        while (warnings is [var first, ..])
        {
            document = await FixAsync(document, first);
            ImmutableArray<Diagnostic> left = await WarningsAsync(document);
            Assert.Equal(warnings.Length - 1, left.Length);
            warnings = left;
        }
    }

    [Fact]
    public async Task The_mended_call_is_a_cast()
    {
        using AdhocWorkspace workspace = new();
        Document document = Open(workspace, Head + "class Sample { void Run() { SslStream stream = new KtlsStream(Stream.Null); stream.AuthenticateAsClient(\"host\"); } }");

        Document mended = await FixAsync(document, Assert.Single(await WarningsAsync(document)));

        Assert.Contains("((KtlsStream)stream).AuthenticateAsClient(\"host\")", (await mended.GetTextAsync()).ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Without_the_library_there_is_nothing_to_say()
    {
        using AdhocWorkspace workspace = new();
        Document document = Open(
            workspace, "using System.Net.Security; class Sample { void Run(SslStream s) => s.AuthenticateAsClient(\"host\"); }", withLibrary: false);

        Assert.Empty(await WarningsAsync(document));
    }

    private static int[] LinesOf(string source) =>
        [.. source.Split('\n').Select((line, i) => (line, i)).Where(l => l.line.Contains("// here", StringComparison.Ordinal)).Select(l => l.i)];

    private static Document Open(AdhocWorkspace workspace, string source, bool withLibrary = true)
    {
        ProjectInfo project = ProjectInfo.Create(
            ProjectId.CreateNewId(),
            VersionStamp.Default,
            "Sample",
            "Sample",
            LanguageNames.CSharp,
            compilationOptions: new CSharpCompilationOptions(
                source.Contains("class ", StringComparison.Ordinal) ? OutputKind.DynamicallyLinkedLibrary : OutputKind.ConsoleApplication),
            metadataReferences: ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!).Split(Path.PathSeparator)
                .Where(p => Path.GetFileName(p) is var name && !name.StartsWith("Microsoft.", StringComparison.Ordinal)
                    && !name.StartsWith("KernelTls", StringComparison.Ordinal))
                .Concat(withLibrary ? [Compiled.LibraryPath] : [])
                .Select(p => MetadataReference.CreateFromFile(p)));
        return workspace.AddProject(project).AddDocument("Sample.cs", source);
    }

    private static async Task<ImmutableArray<Diagnostic>> WarningsAsync(Document document)
    {
        Compilation compilation = (await document.Project.GetCompilationAsync())!;
        Assert.DoesNotContain(compilation.GetDiagnostics(), d => d.Severity == DiagnosticSeverity.Error);
        ImmutableArray<Diagnostic> found = await compilation.WithAnalyzers([new BaseAuthenticationAnalyzer()]).GetAnalyzerDiagnosticsAsync();
        Assert.All(found, d => Assert.Equal(BaseAuthenticationAnalyzer.Id, d.Id));
        return found;
    }

    private static async Task<Document> FixAsync(Document document, Diagnostic warning)
    {
        List<CodeAction> actions = [];
        await new BaseAuthenticationCodeFix().RegisterCodeFixesAsync(
            new CodeFixContext(document, warning, (action, _) => actions.Add(action), CancellationToken.None));
        ImmutableArray<CodeActionOperation> operations = await Assert.Single(actions).GetOperationsAsync(CancellationToken.None);
        return Assert.IsType<ApplyChangesOperation>(Assert.Single(operations)).ChangedSolution.GetDocument(document.Id)!;
    }
}
