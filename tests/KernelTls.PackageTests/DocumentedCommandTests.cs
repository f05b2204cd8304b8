using System.Globalization;
using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests that each command in the documents is in eng/testing/commands.tsv, and runs those that can run here: their exit code and output are
/// what the documents promise.
/// </summary>
public class DocumentedCommandTests
{
    private static readonly string s_wait = $"{(int)(Limits.Wait.TotalSeconds / 3)}";

    public static TheoryData<string> Run => [.. DocumentedCommand.Table.Where(c => c.How == "run").Select(c => c.Line)];

    public static TheoryData<string> RunLate => [.. DocumentedCommand.Table.Where(c => c.How == "late").Select(c => c.Line)];

    [Fact]
    public void The_table_has_the_commands_of_the_documents()
    {
        (string Document, string Command)[] found =
            [.. DocumentedCommand.Documents.SelectMany(d => DocumentedCommand.In(d).Select(c => (Path.GetRelativePath(Repository.Root, d), c)))];
        string[] known = [.. DocumentedCommand.Table.Select(c => c.Line)];

        string[] wrong =
        [
            .. found.Where(f => !known.Contains(f.Command)).Select(f => $"{f.Document}: {f.Command}"),
            .. known.Where(k => found.All(f => f.Command != k)).Select(k => $"no document has: {k}"),
        ];

        Assert.True(wrong.Length == 0, string.Join('\n', wrong));
        Assert.Equal(known.Distinct(), known);
    }

    [Fact]
    public void A_row_says_how_its_command_is_tried()
    {
        string[] tests = Directory.GetFiles(Path.Combine(Repository.Root, "tests"), "*Tests.cs", SearchOption.AllDirectories);
        Assert.All(DocumentedCommand.Table, command =>
        {
            switch (command.How)
            {
                case "run" or "late":
                    Assert.Matches(@"^\d+(\|\d+)*( && |$)", command.What);
                    break;
                case "test":
                    string[] what = command.What.Split(": ", 2);
                    string file = Assert.Single(tests, path => Path.GetFileNameWithoutExtension(path) == what[0]);
                    Assert.Matches(what[1], ProjectOf(file));
                    break;
                default:
                    Assert.Equal("not", command.How);
                    Assert.Contains(' ', command.What); // a reason
                    break;
            }
        });
    }

    /// <summary>Also of commands that are not run.</summary>
    [Fact]
    public async Task Commands_of_the_repository_take_the_options()
    {
        foreach (IGrouping<string, string[]> commands in DocumentedCommand.Table
            .Select(c => c.Line.Split(' ').SkipWhile(w => w.Contains('=', StringComparison.Ordinal)).ToArray())
            .Where(words => words[0].StartsWith("eng/", StringComparison.Ordinal) || (words is ["ktls", { } command, ..] && !command.StartsWith('-')))
            .Where(words => words.TakeWhile(w => w != "--").Any(w => w.StartsWith("--", StringComparison.Ordinal)))
            .GroupBy(words => words[0] == "ktls" ? $"ktls {words[1]}" : words[0]))
        {
            string help = await ShellAsync($"{commands.Key} --help", [], 0);
            Assert.All(
                commands.SelectMany(words => words.TakeWhile(w => w != "--").Where(w => w.StartsWith("--", StringComparison.Ordinal))).Distinct(),
                option => Assert.True(help.Split([.. " \n[]|,…="]).Contains(option), $"{commands.Key} has no option {option}; its help:\n{help}"));
        }
    }

    [Theory]
    [MemberData(nameof(Run))]
    public async Task Its_exit_code_and_output_are_as_promised(string line)
    {
        DocumentedCommand command = DocumentedCommand.Table.Single(c => c.Line == line);
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram peer = server;
        Directory.CreateDirectory(directory["served"]);
        (string Name, string Value)[] replaced =
        [
            ("HOST:PORT", string.Create(CultureInfo.InvariantCulture, $"localhost:{port}")), ("ADDRESS", "127.0.0.1"), ("DIR", $"'{directory["served"]}' --port 0"),
            ("PID", "$PID"),
        ];
        string actual = replaced.Aggregate(line, (text, pair) => Regex.Replace(text, $@"(?<=\s){pair.Name}\b", pair.Value));
        string before = line.Contains("PID", StringComparison.Ordinal)
            ? $"ktls serve '{directory["served"]}' --port 0 > '{directory["log"]}' & PID=$!; until [ -s '{directory["log"]}' ]; do sleep 0.1; done; trap 'kill $PID' EXIT; "
            : "";

        // serve and top end by a signal, and a second a row is enough for the others.
        bool endless = line.StartsWith("ktls serve", StringComparison.Ordinal) || line.StartsWith("ktls top", StringComparison.Ordinal);
        string shell = endless ? $"timeout --signal INT --preserve-status 3 {actual}" : line == "ktls bench" ? $"{actual} --seconds 0.05" : actual;

        await ExpectAsync(command, before + shell, [("SSL_CERT_FILE", Certificates.WriteAuthority(directory.FullName)), ("SSL_CERT_DIR", directory["none"])]);
    }

    [Theory]
    [Trait("loop", "outer")]
    [MemberData(nameof(RunLate))]
    public Task One_that_takes_longer_is_as_promised_too(string line) =>
        ExpectAsync(DocumentedCommand.Table.Single(c => c.Line == line), line, []);

    /// <summary>Returns the sources of the project that the file is a part of.</summary>
    private static string ProjectOf(string file)
    {
        string project = Path.Combine(Repository.Root, "tests", Path.GetRelativePath(Path.Combine(Repository.Root, "tests"), file).Split('/')[0]);
        return string.Concat(Directory.GetFiles(project, "*.cs", SearchOption.AllDirectories).Select(File.ReadAllText));
    }

    private static async Task ExpectAsync(DocumentedCommand command, string line, (string Name, string Value)[] environment)
    {
        string[] expected = command.What.Split(" && ");
        string said = await ShellAsync(line, environment, [.. expected[0].Split('|').Select(code => int.Parse(code, CultureInfo.InvariantCulture))]);
        Assert.All(expected[1..], pattern => Assert.True(Regex.IsMatch(said, pattern, RegexOptions.Multiline), $"{command.Line}: no '{pattern}' in:\n{said}"));
    }

    /// <summary>Runs a line of the shell, in which ktls is the built tool, in the repository's root.</summary>
    private static async Task<string> ShellAsync(string line, (string Name, string Value)[] environment, params int[] codes)
    {
        using TemporaryDirectory path = new();
        await File.WriteAllTextAsync(path["ktls"], $"#!/bin/sh\nexec dotnet '{Repository.Built("KernelTls.Tool")}' \"$@\"\n");
        string exports = string.Concat(environment.Select(e => $"export {e.Name}='{e.Value}'; "));
        (int code, string said) = await Workshop.TryAsync(Repository.Root, "bash", "-c", $"chmod u+x '{path["ktls"]}'; export PATH='{path.FullName}':\"$PATH\"; {exports}{{ {line}; }} 2>&1 < /dev/null");
        Assert.True(codes.Contains(code), $"{line} ended with {code}, not {string.Join(" or ", codes)}: {said}");
        return said;
    }
}
