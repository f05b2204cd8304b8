namespace KernelTls.PackageTests;

/// <summary>
/// Tests the files for the repository's host and editors, which are not executed here: they can be parsed, and the
/// names in them exist.
/// </summary>
/// <remarks>
/// The class is in this project because the project runs on the host, knows the repository's path, and starts its
/// commands.
/// </remarks>
public class HostingTests
{
    private static readonly string[] s_formElements = ["markdown", "textarea", "input", "dropdown", "checkboxes"];

    private static readonly string[] s_runners = ["ubuntu-24.04", "windows-latest", "macos-latest"];

    private static readonly Dictionary<string, string> s_help = [];

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

    /// <summary>A workflow has only read permission, has a time limit, and uses no action without a version.</summary>
    [Theory]
    [MemberData(nameof(Workflows))]
    public void A_workflow_is_bounded(string path)
    {
        Dictionary<object, object> workflow = new HostedFile(path).Yaml();

        Assert.Equal([new("contents", "read")], HostedFile.Map(workflow["permissions"]));
        Assert.NotEmpty(HostedFile.Map(workflow["on"]));
        Assert.NotEmpty(HostedFile.Map(workflow["jobs"]));
        Assert.All(HostedFile.Map(workflow["jobs"]).Values.Select(HostedFile.Map), job =>
        {
            Assert.All(RunnersOf(job), runner => Assert.Contains(runner, s_runners));
            Assert.InRange(int.Parse((string)job["timeout-minutes"], null), 1, 360);
            Assert.All(HostedFile.List(job["steps"]).Select(HostedFile.Map), step =>
            {
                Assert.True(step.ContainsKey("uses") != step.ContainsKey("run"), $"a step of {path} either uses an action or runs a command");
                if (step.TryGetValue("uses", out object? action))
                {
                    Assert.Matches(@"^actions/[a-z-]+@v\d+$", (string)action);
                }
            });
        });
    }

    /// <summary>The job creates the files that it uploads: a command names them in its line or in its help.</summary>
    [Theory]
    [MemberData(nameof(Workflows))]
    public async Task Kept_files_are_made_by_the_workflow(string path)
    {
        HostedFile file = new(path);
        Assert.NotEmpty(file.Commands());
        string said = "";
        foreach ((string command, _) in file.Commands())
        {
            said += await HelpAsync(command);
        }

        Dictionary<object, object>[] steps =
            [.. HostedFile.Map(file.Yaml()["jobs"]).Values.SelectMany(job => HostedFile.List(HostedFile.Map(job)["steps"])).Select(HostedFile.Map)];
        said += string.Concat(steps.Select(step => step.GetValueOrDefault("run")));
        string[] kept =
        [
            .. steps.Where(step => step.TryGetValue("uses", out object? action) && ((string)action).StartsWith("actions/upload-artifact@", StringComparison.Ordinal))
                .SelectMany(step => ((string)HostedFile.Map(step["with"])["path"]).Split('\n', StringSplitOptions.RemoveEmptyEntries)),
        ];

        Assert.NotEmpty(kept);
        Assert.All(kept, name => Assert.Contains(name, said, StringComparison.Ordinal));
    }

    [Theory]
    [MemberData(nameof(Forms))]
    public void A_form_is_made_of_elements_that_the_host_knows(string path)
    {
        Dictionary<object, object> form = new HostedFile(path).Yaml();
        Dictionary<object, object>[] elements = [.. HostedFile.List(form["body"]).Select(HostedFile.Map)];

        Assert.NotEmpty((string)form["name"]);
        Assert.NotEmpty((string)form["description"]);
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
