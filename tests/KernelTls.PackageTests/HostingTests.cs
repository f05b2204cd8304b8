using System.Text.RegularExpressions;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests the files for the repository's host and editors, which are not executed here: they can be parsed, and the
/// names in them exist.
/// </summary>
/// <remarks>
/// The class is in this project because the project runs on the host, knows the repository's path, and starts its
/// commands.
/// </remarks>
public partial class HostingTests
{
    private static readonly string[] s_formElements = ["markdown", "textarea", "input", "dropdown", "checkboxes"];

    private static readonly string[] s_runners = ["ubuntu-24.04", "windows-latest", "macos-latest"];

    private static readonly Dictionary<string, string> s_help = [];

    // The permissions of a job beside reading the sources.
    private static readonly Dictionary<string, string[]> s_granted = new()
    {
        ["codeql/analyze"] = ["actions: read", "security-events: write"],
        ["docs/publish"] = ["id-token: write", "pages: write"],
        ["release/attest"] = ["attestations: write", "id-token: write"],
        ["release/publish"] = ["contents: write", "id-token: write"],
        ["scorecard/analyze"] = ["id-token: write", "security-events: write"],
    };

    public static TheoryData<string> Files => [.. HostedFile.All];

    public static TheoryData<string> Workflows => [.. HostedFile.Workflows];

    public static TheoryData<string> Forms => [.. HostedFile.Forms];

    [Theory]
    [MemberData(nameof(Files))]
    public void A_file_can_be_read(string path) => new HostedFile(path).Parse();

    [Theory]
    [MemberData(nameof(Files))]
    public void Paths_that_a_file_names_exist(string path) =>
        Assert.All(new HostedFile(path).Paths(), named => Assert.True(Path.Exists(Path.Combine(Repository.Root, named)), $"{path}: there is no {named}"));

    [Theory]
    [MemberData(nameof(Files))]
    public async Task Commands_that_a_file_calls_take_its_options(string path)
    {
        foreach ((string command, string[] options) in new HostedFile(path).Commands())
        {
            string help = await HelpAsync(command);
            Assert.All(options, option => Assert.True(
                help.Split([.. " \n[]|,…="]).Contains(option), $"{path}: {command} has no option {option}; its help:\n{help}"));
        }
    }

    /// <summary>A workflow may only read, unless a job is known to need more; its jobs have time limits.</summary>
    [Theory]
    [MemberData(nameof(Workflows))]
    public void A_workflow_is_bounded(string path)
    {
        Dictionary<object, object> workflow = new HostedFile(path).Yaml();

        Assert.Equal([new("contents", "read")], HostedFile.Map(workflow["permissions"]));
        Assert.NotEmpty(HostedFile.Map(workflow["on"]));
        Assert.NotEmpty(HostedFile.Map(workflow["jobs"]));
        Assert.All(HostedFile.Map(workflow["jobs"]), named =>
        {
            Dictionary<object, object> job = HostedFile.Map(named.Value);
            string[] granted = job.TryGetValue("permissions", out object? permissions)
                ? [.. HostedFile.Map(permissions).Select(one => $"{one.Key}: {one.Value}").Where(one => one != "contents: read").Order(StringComparer.Ordinal)]
                : [];
            Assert.Equal(s_granted.GetValueOrDefault($"{Path.GetFileNameWithoutExtension(path)}/{named.Key}", []), granted);
            if (job.TryGetValue("uses", out object? called))
            {
                Assert.Contains(((string)called)[2..], HostedFile.Workflows);
                return;
            }

            Assert.All(RunnersOf(job), runner => Assert.Contains(runner, s_runners));
            Assert.InRange(int.Parse((string)job["timeout-minutes"], null), 1, 360);
            Assert.All(HostedFile.List(job["steps"]).Select(HostedFile.Map), step => Assert.True(
                step.ContainsKey("uses") != step.ContainsKey("run"), $"a step of {path} either uses an action or runs a command"));
        });
    }

    /// <summary>An action is pinned by its commit, the same one in every workflow, with the version beside it that the updates follow.</summary>
    [Fact]
    public void An_action_is_pinned_by_its_commit()
    {
        string[] lines = [.. HostedFile.Workflows.SelectMany(path => new HostedFile(path).Text.Split('\n')).Where(line => line.Contains("uses: ", StringComparison.Ordinal))];
        (string Repository, string Pin)[] pins =
        [
            .. from line in lines
               where !line.Contains("uses: ./", StringComparison.Ordinal)
               let match = PinnedAction().Match(line)
               select match.Success ? (match.Groups["repository"].Value, match.Groups["pin"].Value) : (line, "not pinned"),
        ];

        Assert.NotEmpty(pins);
        Assert.DoesNotContain(pins, pin => pin.Pin == "not pinned");
        Assert.All(pins.GroupBy(pin => pin.Repository), one => Assert.Single(one.Select(pin => pin.Pin).Distinct()));
    }

    /// <summary>No workflow needs a stored key, and none writes what a stranger chooses (a title, a branch) into a command.</summary>
    [Theory]
    [MemberData(nameof(Workflows))]
    public void A_workflow_has_no_secret_and_runs_no_foreign_text(string path)
    {
        string text = new HostedFile(path).Text;
        Assert.DoesNotContain("secrets.", text, StringComparison.Ordinal);
        Assert.DoesNotContain("pull_request_target", text, StringComparison.Ordinal);
        Assert.All(Steps(path), step => Assert.DoesNotContain("${{", (string)step.GetValueOrDefault("run", ""), StringComparison.Ordinal));
    }

    /// <summary>What is pushed was tested, made twice with the same bytes, and attested before, in this order.</summary>
    [Fact]
    public void A_release_is_attested_before_it_is_pushed()
    {
        const string path = ".github/workflows/release.yml";
        Dictionary<object, object> jobs = HostedFile.Map(new HostedFile(path).Yaml()["jobs"]);
        string[] Before(string job) => HostedFile.Map(jobs[job]).GetValueOrDefault("needs") switch
        {
            string one => [one],
            List<object> many => [.. many.Cast<string>()],
            _ => [],
        };
        string[] Runs(string job) => [.. HostedFile.List(HostedFile.Map(jobs[job])["steps"]).Select(HostedFile.Map).Select(s => (string)(s.GetValueOrDefault("uses") ?? s["run"]))];

        Assert.Equal(["test", "make"], Before("attest"));
        Assert.Equal(["attest"], Before("publish"));
        Assert.Equal("release", HostedFile.Map(jobs["publish"])["environment"]);
        string[] attest = Runs("attest"), publish = Runs("publish");
        Assert.InRange(
            Array.FindIndex(attest, s => s.StartsWith("diff --recursive", StringComparison.Ordinal)),
            0, Array.FindIndex(attest, s => s.StartsWith("actions/attest-build-provenance@", StringComparison.Ordinal)) - 1);
        Assert.InRange(
            Array.FindIndex(publish, s => s.Contains("gh release create ", StringComparison.Ordinal)),
            0, Array.FindIndex(publish, s => s.StartsWith("dotnet nuget push", StringComparison.Ordinal)) - 1);
        Assert.DoesNotContain(Runs("make"), s => s.Contains("nuget push", StringComparison.Ordinal));
    }

    /// <summary>Each kind of file that eng/release makes is attested, and is in the release, so that SHA256SUMS can be checked there.</summary>
    [Fact]
    public async Task Each_file_of_a_release_is_attested_and_published()
    {
        string workflow = new HostedFile(".github/workflows/release.yml").Text;
        string published = Assert.Single(workflow.Split('\n'), line => line.Contains("gh release create ", StringComparison.Ordinal));
        string[] kinds = [.. FileKind().Matches(await HelpAsync("eng/release")).Select(m => m.Groups[1].Value).Distinct()];

        Assert.Equal([".nupkg", ".snupkg", ".spdx.json", ".tar.gz"], kinds.Order(StringComparer.Ordinal));
        Assert.All(kinds, kind => Assert.Contains($"copies/release-one/*{kind}\n", workflow, StringComparison.Ordinal));
        Assert.All([.. kinds.Select(kind => $" ./*{kind} "), " notes.md ", " SHA256SUMS"], name => Assert.Contains(name, published, StringComparison.Ordinal));
    }

    /// <summary>The job creates the files that it uploads: a command names them in its line or in its help.</summary>
    [Theory]
    [MemberData(nameof(Workflows))]
    public async Task Kept_files_are_made_by_the_workflow(string path)
    {
        HostedFile file = new(path);
        string said = "";
        foreach ((string command, _) in file.Commands())
        {
            said += await HelpAsync(command);
        }

        Dictionary<object, object>[] steps = [.. Steps(path)];
        said += string.Concat(steps.Select(step => step.GetValueOrDefault("run")));
        string[] kept =
        [
            .. steps.Where(step => step.TryGetValue("uses", out object? action) && ((string)action).StartsWith("actions/upload-", StringComparison.Ordinal))
                .SelectMany(step => ((string)HostedFile.Map(step["with"])["path"]).Split('\n', StringSplitOptions.RemoveEmptyEntries)),
        ];

        // Analyses keep nothing.
        Assert.Equal(file.Commands().Any(c => c.Command != "eng/native"), kept.Length > 0);
        Assert.All(kept, name => Assert.Contains(name, said, StringComparison.Ordinal));
    }

    [Theory]
    [MemberData(nameof(Forms))]
    public void A_form_is_made_of_elements_that_the_host_knows(string path)
    {
        Dictionary<object, object> form = new HostedFile(path).Yaml();
        Dictionary<object, object>[] elements = [.. HostedFile.List(form["body"]).Select(HostedFile.Map)];

        // A discussion's form has the name of its category.
        if (path.Contains("ISSUE_TEMPLATE", StringComparison.Ordinal))
        {
            Assert.NotEmpty((string)form["name"]);
            Assert.NotEmpty((string)form["description"]);
        }

        Assert.All(elements, element => Assert.Contains(element["type"], s_formElements));
        Assert.All(elements, element => Assert.True(HostedFile.Map(element["attributes"]).ContainsKey((string)element["type"] == "markdown" ? "value" : "label")));
        object[] ids = [.. elements.Where(element => (string)element["type"] != "markdown").Select(element => element["id"])];
        Assert.Equal(ids.Distinct(), ids);
    }

    [Fact]
    public void A_bug_s_mode_is_one_of_the_library_s()
    {
        Dictionary<object, object> form = new HostedFile(".github/ISSUE_TEMPLATE/bug.yml").Yaml();
        Dictionary<object, object> mode = Assert.Single(
            HostedFile.List(form["body"]).Select(HostedFile.Map), element => Equals(element.GetValueOrDefault("id"), "mode"));

        Assert.Equal(Enum.GetNames<KtlsMode>(), HostedFile.List(HostedFile.Map(mode["attributes"])["options"]));
    }

    private static object[] RunnersOf(Dictionary<object, object> job) => (string)job["runs-on"] == "${{ matrix.system }}"
        ? [.. HostedFile.List(HostedFile.Map(HostedFile.Map(job["strategy"])["matrix"])["system"])]
        : [job["runs-on"]];

    private static IEnumerable<Dictionary<object, object>> Steps(string path) =>
        HostedFile.Map(new HostedFile(path).Yaml()["jobs"]).Values.Select(HostedFile.Map)
            .Where(job => job.ContainsKey("steps")).SelectMany(job => HostedFile.List(job["steps"])).Select(HostedFile.Map);

    [GeneratedRegex(@"\((\.[a-z.]+)\)")]
    private static partial Regex FileKind();

    [GeneratedRegex(@"uses: (?<repository>(actions|github|NuGet|ossf)/[\w-]+)(/[\w-]+)?@(?<pin>[0-9a-f]{40} # v\d+\.\d+\.\d+)$")]
    private static partial Regex PinnedAction();

    private static async Task<string> HelpAsync(string command)
    {
        if (!s_help.TryGetValue(command, out string? help))
        {
            string program = Path.Combine(Repository.Root, command);
            if (command.Split(' ') is ["ktls", string subcommand])
            {
                help = await SayAsync("dotnet", Repository.Built("KernelTls.Tool"), subcommand, "--help");
            }
            else
            {
                Assert.True(File.Exists(program), $"there is no command {command}");
                // Fails if the file is not executable.
                help = await SayAsync(program, "--help");
            }

            s_help.Add(command, help);
        }

        return help;
    }

    private static async Task<string> SayAsync(string program, params string[] arguments)
    {
        (int code, string said) = await Workshop.TryAsync(Repository.Root, program, arguments);
        Assert.True(code == 0, $"{program} {string.Join(' ', arguments)} ended with {code}: {said}");
        return said;
    }
}
