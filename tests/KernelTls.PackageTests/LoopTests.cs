using System.Reflection;
using System.Text.RegularExpressions;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests the choice of the inner loop by the repairs of the past, eng/testing/repairs.tsv: for each of them the classes of tests
/// that show the fault, and where they show it.
/// </summary>
public partial class LoopTests
{
    private const int LeastOf60 = 54;

    [Fact]
    public void The_inner_loop_holds_the_tests_of_most_repairs()
    {
        Repair[] repairs = [.. File.ReadLines(Path.Combine(Repository.Root, "eng/testing/repairs.tsv")).Skip(1).Select(Repair.Parse)];
        Assert.Equal(60, repairs.Length);

        string[] missed = [.. repairs.Where(repair => !repair.Classes.Any(c => IsInInnerLoop(repair, c))).Select(repair => repair.ToString())];
        Assert.True(repairs.Length - missed.Length >= LeastOf60, string.Join('\n', missed));
    }

    /// <summary>The traits that eng/testing/suites.sh and the workflow for other systems select by are the only ones of their names.</summary>
    [Fact]
    public void A_trait_has_one_of_the_values_that_the_suites_select()
    {
        string suites = File.ReadAllText(Path.Combine(Repository.Root, "eng/testing/suites.sh"))
            + File.ReadAllText(Path.Combine(Repository.Root, ".github/workflows/platforms.yml"));
        string[] files = Directory.GetFiles(Path.Combine(Repository.Root, "tests"), "*.cs", SearchOption.AllDirectories);
        (string Name, string Value)[] traits =
            [.. files.SelectMany(file => Trait().Matches(File.ReadAllText(file))).Select(m => (m.Groups[1].Value, m.Groups[2].Value)).Distinct()];

        Assert.Contains(("loop", "outer"), traits);
        Assert.All(traits, trait => Assert.True(
            trait.Name == "Pitfall" || trait.Name == "loop"
                ? trait.Name == "Pitfall" || trait.Value is "outer" or "outer-kernel" or "weekly"
                : suites.Contains($"{trait.Name}={trait.Value}", StringComparison.Ordinal),
            $"[Trait(\"{trait.Name}\", \"{trait.Value}\")]"));
    }

    /// <summary>They are shared out, because they take longer than anything else.</summary>
    [Fact]
    public void One_part_of_this_machine_has_each_test_of_this_project()
    {
        string suites = File.ReadAllText(Path.Combine(Repository.Root, "eng/testing/suites.sh"));
        string[][] parts = [.. Regex.Matches(suites.Split("\n)\n")[0], "'\\w+ KernelTls.PackageTests - (.+)'").Select(m => m.Groups[1].Value.Split(' '))];
        Assert.Equal(3, parts.Length);
        MethodInfo[] tests = [.. typeof(LoopTests).Assembly.GetTypes().SelectMany(t => t.GetMethods()).Where(m => m.IsDefined(typeof(FactAttribute)))];

        Assert.NotEmpty(tests);
        Assert.All(tests, test =>
        {
            string[] traits = [.. test.GetCustomAttributes<TraitAttribute>().Concat(test.DeclaringType!.GetCustomAttributes<TraitAttribute>()).Select(t => $"{t.Name}={t.Value}")];
            int count = parts.Count(part => HasAll(part, "-trait-", false) && HasAll(part, "-trait", true));
            Assert.True(count == 1, $"{count} parts have {test.DeclaringType!.Name}.{test.Name}");

            bool HasAll(string[] part, string option, bool expected) =>
                part.Index().Where(word => word.Item == option).All(word => traits.Contains(part[word.Index + 1]) == expected);
        });
    }

    private static bool IsInInnerLoop(Repair repair, string name)
    {
        if (repair.Project == "native-tests")
        {
            Assert.True(File.Exists(Path.Combine(Repository.Root, $"native/tests/{name}.c")), repair.ToString());
            return true;
        }

        string file = Path.Combine(Repository.Root, "tests", repair.Project, $"{name}.cs");
        Assert.True(File.Exists(file), repair.ToString());
        Match head = Regex.Match(File.ReadAllText(file), $@"\A(.*?)\bclass {name}\b", RegexOptions.Singleline);
        Assert.True(head.Success, file);
        string[] loops = [.. Trait().Matches(head.Value).Where(m => m.Groups[1].Value == "loop").Select(m => m.Groups[2].Value)];
        string suites = File.ReadAllText(Path.Combine(Repository.Root, "eng/testing/suites.sh"));
        return repair.Where switch
        {
            "host" => loops is [] or ["outer-kernel"],
            "kernel" => loops is [],
            "net11" => suites.Split('\n').Any(line => line.Contains($"'inner {repair.Project} ", StringComparison.Ordinal)
                && line.Contains($"-class *.{name}", StringComparison.Ordinal)),
            _ => false,
        };
    }

    [GeneratedRegex("""\[Trait\("(\w+)", "([\w-]+)"\)\]""")]
    private static partial Regex Trait();

    private sealed record Repair(string Commit, string Fault, string Project, string[] Classes, string Where)
    {
        public static Repair Parse(string line)
        {
            string[] fields = line.Split('\t');
            Assert.Equal(6, fields.Length);
            return new Repair(fields[0], fields[2], fields[3], fields[4].Split(','), fields[5]);
        }

        public override string ToString() => $"{Commit} {Fault}: {Project} {string.Join(' ', Classes)}, {Where}";
    }
}
