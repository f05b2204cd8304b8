using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests the site that eng/docs builds of the documents.</summary>
public class DocsTests
{
    /// <summary>Each document and each public type has a page and is found by the search.</summary>
    [Fact]
    [Trait("loop", "outer")]
    public async Task The_site_has_the_documents_and_the_types()
    {
        using TemporaryDirectory directory = new();
        await Workshop.RunAsync(Repository.Root, Repository.Docs, "--output", directory["site"]);

        string[] pages =
        [
            "index.html",
            .. Directory.GetFiles(Path.Combine(Repository.Root, "docs"), "*.md", SearchOption.AllDirectories)
                .Select(file => Path.ChangeExtension(Path.GetRelativePath(Repository.Root, file), "html")),
            .. typeof(KtlsStream).Assembly.GetExportedTypes()
                .Where(type => type.Namespace == "KernelTls").Select(type => $"api/{type.FullName}.html"),
        ];
        using JsonDocument index = JsonDocument.Parse(File.ReadAllText(directory["site/index.json"]));
        Assert.Contains("api/KernelTls.KtlsStream.html", pages);
        Assert.All(pages, page =>
        {
            Assert.True(File.Exists(Path.Combine(directory["site"], page)), $"the site has no {page}");
            Assert.True(index.RootElement.TryGetProperty(page, out _), $"the search does not know {page}");
        });
    }

    /// <summary>A link to a heading that is not there, and a document that is in no menu, are errors.</summary>
    [Fact]
    [Trait("loop", "outer")]
    public async Task A_broken_link_and_a_lost_document_are_errors()
    {
        using TemporaryDirectory directory = new();
        Repository.CopySources(directory["copy"]);
        File.AppendAllText(directory["copy/docs/tuning.md"], "\n[elsewhere](security.md#no-such-heading)\n");
        (int code, string said) = await BuildAsync();
        Assert.Equal(1, code);
        Assert.Contains("security.md doesn't contain a bookmark named 'no-such-heading'", said, StringComparison.Ordinal);

        File.WriteAllText(directory["copy/docs/lost.md"], "# Lost\n");
        (code, said) = await BuildAsync();
        Assert.Equal(1, code);
        Assert.Contains("in no menu of eng/site/docs-toc.yml: docs/lost.md", said, StringComparison.Ordinal);

        Task<(int Code, string Said)> BuildAsync() =>
            Workshop.TryLineAsync(directory["copy"], "eng/docs --output site");
    }
}
