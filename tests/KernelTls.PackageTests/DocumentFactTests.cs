using System.Globalization;
using System.Reflection;
using System.Text.RegularExpressions;
using System.Xml.Linq;
using KernelTls.AspNetCore;

namespace KernelTls.PackageTests;

/// <summary>Tests that names, numbers and defaults in the documents, and in the XML documentation, are those of the code.</summary>
public partial class DocumentFactTests
{
    /// <summary>The names of .NET, OpenSSL and other programs. The sources need not have them.</summary>
    private static readonly HashSet<string> s_foreign =
    [
        "DOTNET_ROOT", "DOTNET_SYSTEM_NET_SOCKETS_INLINE_COMPLETIONS",
        "System.Net.Security.EnableServerAiaDownloads", "System.Net.EnableSslKeyLogging",
    ];

    private static readonly BindingFlags s_all =
        BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Static | BindingFlags.Instance | BindingFlags.FlattenHierarchy;

    private static readonly Type[] s_types = [.. new[] { typeof(KtlsStream), typeof(IKtlsFeature) }.SelectMany(t => t.Assembly.GetTypes())];

    private static readonly Lazy<string> s_sources = new(() => string.Join(
        '\n',
        new[] { "src", "tests", "benchmarks", "samples", "eng", "native" }
            .SelectMany(folder => Directory.EnumerateFiles(Path.Combine(Repository.Root, folder), "*", SearchOption.AllDirectories))
            .Where(file => Path.GetExtension(file) is ".cs" or ".sh" or ".txt" or ".c" or ".h" or ".targets" or ".props" or "" && new FileInfo(file).Length < 1_000_000)
            .Select(File.ReadAllText)));

    public static TheoryData<string> Documents => [.. DocumentedCommand.Documents.Select(d => Path.GetRelativePath(Repository.Root, d))];

    [Theory]
    [MemberData(nameof(Documents))]
    public void Variables_and_switches_exist(string document) => Assert.All(
        Variable().Matches(Read(document)).Select(m => m.Value).Distinct().Where(name => !s_foreign.Contains(name)),
        name => AssertInSources(name, $@"\b{Regex.Escape(name)}\b"));

    [Theory]
    [MemberData(nameof(Documents))]
    public void Properties_of_a_project_and_codes_of_messages_exist(string document) => Assert.All(
        Property().Matches(Read(document)).Select(m => m.Value).Distinct(), name => AssertInSources(name, $@"\b{name}\b"));

    [Theory]
    [MemberData(nameof(Documents))]
    public void Metrics_exist(string document) => Assert.All(
        Metric().Matches(Read(document)).Select(m => m.Value).Distinct(), name => AssertInSources(name, $"\"{Regex.Escape(name)}\""));

    /// <summary>
    /// Of the libraries, public or not: <c>KtlsStream.Offload</c>, <c>TlsSender.Gather</c>. KernelTls is a namespace in documents, although the
    /// event source's type has that name as well.
    /// </summary>
    [Theory]
    [MemberData(nameof(Documents))]
    public void Members_exist(string document) => Assert.Empty(
        from Match match in Member().Matches(Read(document))
        let type = match.Groups["type"].Value
        where type != nameof(KernelTls)
        let types = s_types.Where(t => t.Name == type).ToArray()
        where types.Length != 0 && !types.Any(t => t.GetMember(match.Groups["member"].Value, s_all).Length != 0)
        select match.Value);

    [Fact]
    public void The_readme_names_each_option()
    {
        string readme = Read("README.md");
        Assert.All(typeof(KtlsOptions).GetProperties().Select(p => p.Name), name => Assert.Matches($@"`([\w. =]*\W)?{name}\W?|\.{name}\b|{name} =", readme));
    }

    [Fact]
    public void The_keys_of_the_configuration_are_those_of_the_code()
    {
        object setters = s_types.Single(t => t.Name == "KtlsConfiguration").GetField("s_setters", s_all)!.GetValue(null)!;
        string[] keys = [.. ((System.Collections.IDictionary)setters).Keys.Cast<string>()];
        string sentence = Assert.Single(Regex.Matches(Read("docs/switches.md"), "set the options by their names:(.*?)[.]", RegexOptions.Singleline)).Value;

        Assert.Equal(keys.Order(StringComparer.Ordinal), Regex.Matches(sentence, "`(.*?)`").Select(m => m.Groups[1].Value).Order(StringComparer.Ordinal));
    }

    [Fact]
    public void Every_warning_of_the_weaver_and_the_analyzer_is_explained()
    {
        string libraries = Read("docs/libraries.md");
        string all = string.Concat(DocumentedCommand.Documents.Select(File.ReadAllText));
        string[] codes = [.. Code().Matches(s_sources.Value).Select(m => m.Value).Distinct().Order(StringComparer.Ordinal)];

        Assert.NotEmpty(codes);
        Assert.All(codes, code => Assert.True(
            code.StartsWith("KTLSW", StringComparison.Ordinal) ? libraries.Contains($"| `{code}`", StringComparison.Ordinal) : all.Contains($"`{code}`", StringComparison.Ordinal),
            code));
    }

    /// <summary>The sentence is in the document, and the constant behind it has its value: bytes, a count, or seconds.</summary>
    [Theory]
    [InlineData("docs/security.md", "128 in a row are allowed", "HandshakeMessageLimiter.Burst", 128)]
    [InlineData("docs/security.md", "at most 65,536 are saved", "HandshakeMessageLimiter.MaxTokens", 65_536)]
    [InlineData("docs/security.md", "the alert gets a second and 256 KiB to be read", "LingeringClose.MaxBytes", 256 * 1024)]
    [InlineData("docs/security.md", "the alert gets a second and 256 KiB to be read", "LingeringClose.s_limit", 1)]
    [InlineData("docs/security.md", "without progress for 3 s, or for a minute", "LingeringClose.s_closeLimit", 3)]
    [InlineData("docs/security.md", "without progress for 3 s, or for a minute", "LingeringClose.DataLimit", 60)]
    [InlineData("docs/security.md", "less than five minutes old", "CachedValidationResult.Lifetime", 300)]
    [InlineData("docs/security.md", "at most 500 sessions of clients and 128 contexts", "Resumption.DefaultClientSessions", 500)]
    [InlineData("docs/security.md", "at most 500 sessions of clients and 128 contexts", "TlsContexts.Capacity", 128)]
    [InlineData("docs/tuning.md", "built once for five minutes of connections", "CachedValidationResult.Lifetime", 300)]
    [InlineData("docs/differences.md", "stays open until the peer closes, for up to 1 s", "LingeringClose.s_limit", 1)]
    [InlineData("docs/differences.md", "128 messages may come without data", "HandshakeMessageLimiter.Burst", 128)]
    [InlineData("docs/architecture/ownership.md", "At most 1,024 connections are open in this way", "LingeringClose.MaxCount", 1024)]
    [InlineData("docs/architecture/sending.md", "KiB if a TCP segment is larger than a record, and 1 MiB otherwise", "FileSender.LargeStep", 1 << 20)]
    public void A_number_is_that_of_the_code(string document, string sentence, string constant, long expected)
    {
        Assert.Contains(sentence, string.Join(' ', Read(document).Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries)), StringComparison.Ordinal);
        string[] name = constant.Split('.');
        MemberInfo member = Assert.Single(s_types.Where(t => t.Name == name[0]).SelectMany(t => t.GetMember(name[1], s_all)));
        object? value = member is FieldInfo field ? field.GetValue(null) : ((PropertyInfo)member).GetValue(null);

        Assert.Equal(expected, value is TimeSpan time ? (long)time.TotalSeconds : Convert.ToInt64(value, CultureInfo.InvariantCulture));
    }

    /// <summary>Compares the sentence "The default is" of each property with a new object.</summary>
    [Fact]
    public void A_default_in_the_documentation_of_a_property_is_the_one_of_a_new_object()
    {
        XDocument documentation = XDocument.Load(Path.ChangeExtension(Repository.Built("KernelTls"), ".xml"));
        KtlsOptions options = new();
        string[] wrong =
        [
            .. from property in typeof(KtlsOptions).GetProperties()
               let member = documentation.Descendants("member").Single(m => (string?)m.Attribute("name") == $"P:KernelTls.KtlsOptions.{property.Name}")
               let said = Default().Match(Text(member.Element("summary")!)).Groups[1].Value
               let actual = string.Create(CultureInfo.InvariantCulture, $"{property.GetValue(options) ?? "null"}")
               where !said.Equals(actual, StringComparison.OrdinalIgnoreCase)
               select $"{property.Name}: '{said}', and it is '{actual}'",
        ];

        Assert.Empty(wrong);
    }

    private static void AssertInSources(string name, string pattern) =>
        Assert.True(Regex.IsMatch(s_sources.Value, pattern), $"The sources have no {name}.");

    private static string Read(string document) => File.ReadAllText(Path.Combine(Repository.Root, document));

    /// <summary>Returns the text of an element, with a reference as the last part of its name.</summary>
    private static string Text(XElement element) => string.Concat(element.Nodes().Select(node => node is XElement { } e
        ? e.Attribute("cref")?.Value.Split('.')[^1] ?? e.Attribute("langword")?.Value ?? Text(e)
        : node.ToString())).Replace("\n", " ", StringComparison.Ordinal);

    [GeneratedRegex(@"\b(DOTNET|KTLS|KERNELTLS)_[A-Z0-9_]*[A-Z0-9]\b|\b(System\.Net\.Security|KernelTls\.Weaving)\.[A-Z][A-Za-z]+(?=`)")]
    private static partial Regex Variable();

    [GeneratedRegex(@"\bKernelTls(Weave[A-Z]\w*|HostingStartup)\b(?!Tests)|\bKTLSW?\d{3}\b")]
    private static partial Regex Property();

    [GeneratedRegex(@"\bkernel_tls(\.[a-z_]+)+")]
    private static partial Regex Metric();

    [GeneratedRegex(@"`(?<type>I?[A-Z]\w+)\.(?<member>[A-Z]\w+)\b(?!\.(cs|md)\b)")]
    private static partial Regex Member();

    [GeneratedRegex(@"\bKTLSW?\d{3}\b")]
    private static partial Regex Code();

    [GeneratedRegex(@"[Tt]he\s+default(?:\s+is\s+|,\s+)(\w+)")]
    private static partial Regex Default();
}
