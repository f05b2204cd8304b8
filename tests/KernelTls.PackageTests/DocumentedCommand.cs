using System.Text.RegularExpressions;

namespace KernelTls.PackageTests;

/// <summary>Finds the commands in the repository's documents, and how eng/testing/commands.tsv says that each is tried.</summary>
/// <param name="Line">The command as the documents have it, without its comment.</param>
/// <param name="How">run, late (in the outer loop), test or not.</param>
/// <param name="What">
/// For run and late, the exit codes and patterns that the output contains; for test, a class of tests and a pattern that its project contains; otherwise the reason.
/// </param>
internal sealed partial record DocumentedCommand(string Line, string How, string What)
{
    private static readonly HashSet<string> s_programs =
    [
        "apk", "apt-get", "bpftool", "bpftrace", "cat", "crank", "crank-agent", "curl", "dotnet", "dotnet-counters", "dotnet-trace", "echo",
        "ethtool", "git", "grep", "ip", "ktls", "modprobe", "mptcpize", "openssl", "setpriv", "ss", "sysctl", "tc", "ulimit", "unshare",
    ];

    /// <summary>Gets the documents, as paths from the repository's root.</summary>
    public static string[] Documents { get; } =
    [
        .. Directory.GetFiles(Repository.Root, "*.md").Where(f => Path.GetFileName(f) != "CHANGELOG.md"),
        .. Directory.GetFiles(Path.Combine(Repository.Root, "docs"), "*.md", SearchOption.AllDirectories),
        .. Directory.GetDirectories(Path.Combine(Repository.Root, "src")).SelectMany(d => Directory.GetFiles(d, "README.md")),
    ];

    /// <summary>Gets the rows of the table.</summary>
    public static DocumentedCommand[] Table { get; } =
    [
        .. from line in File.ReadLines(Path.Combine(Repository.Root, "eng/testing/commands.tsv")).Skip(1)
           let cells = line.Split('\t')
           select new DocumentedCommand(cells[0], cells[1], cells[2]),
    ];

    /// <summary>Returns the commands of a document: lines of blocks without a language, and code in the text that begins with a program.</summary>
    public static IEnumerable<string> In(string document)
    {
        string text = File.ReadAllText(document);
        foreach (Match block in Block().Matches(text))
        {
            if (block.Groups["language"].Value is not ("" or "bash" or "sh") || block.Value.Contains('─', StringComparison.Ordinal)) // a drawing
            {
                continue;
            }

            foreach (string line in block.Groups["body"].Value.Replace("\\\n", " ", StringComparison.Ordinal).Split('\n'))
            {
                string command = Spaces().Replace(Comment().Replace(line, ""), " ").Trim();
                if (IsCommand(command, isBlock: true))
                {
                    yield return command;
                }
            }
        }

        foreach (Match code in Code().Matches(Block().Replace(text, "")))
        {
            string command = code.Groups["indented"].Value + code.Groups["inline"].Value;
            if (IsCommand(command, isBlock: false))
            {
                yield return command;
            }
        }
    }

    /// <summary>Code in the text is a command only with an argument: otherwise it is the program's name.</summary>
    private static bool IsCommand(string line, bool isBlock)
    {
        string[] words = [.. line.Split(' ').SkipWhile(w => Assignment().IsMatch(w))];
        return words.Length > (isBlock ? 0 : 1)
            && (s_programs.Contains(words[0]) || (words[0].StartsWith("eng/", StringComparison.Ordinal) && !words[0].EndsWith('/')) || words[0].StartsWith("./", StringComparison.Ordinal));
    }

    [GeneratedRegex(@"^```(?<language>\w*)\n(?<body>.*?)^```", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Block();

    [GeneratedRegex(@"`(?<inline>[^`\n]+)`|^    (?<indented>\S.*)$", RegexOptions.Multiline)]
    private static partial Regex Code();

    [GeneratedRegex(@"\s+#( .*)?$")]
    private static partial Regex Comment();

    [GeneratedRegex(@"\s+")]
    private static partial Regex Spaces();

    [GeneratedRegex(@"^[A-Z_0-9]+=")]
    private static partial Regex Assignment();
}
