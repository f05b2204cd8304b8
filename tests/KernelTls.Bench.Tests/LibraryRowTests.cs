using System.Diagnostics;
using System.Text.Json;
using System.Text.Json.Nodes;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Tests;
using Npgsql;
using StackExchange.Redis;

namespace KernelTls.Bench.Tests;

/// <summary>Tests the rows of libraries. Those with a server run in a lab cell, and elsewhere if the server is installed.</summary>
[Trait("loop", "outer")]
public class LibraryRowTests
{
    private static readonly bool s_isCell = Environment.GetEnvironmentVariable("KTLS_CELL") is not null;

    public static TheoryData<string, string> Cells =>
        new(from row in Row.All where row.IsLibrary from mode in row.Modes select (row.Name, mode));

    [Fact]
    public void Rows_of_libraries_are_to_the_library_as_published() =>
        Assert.Equal(
            ["lib-npgsql-copy unwoven sslstream ktls ktls-nopad", "lib-redis-64k unwoven sslstream ktls ktls-nopad"],
            Row.All.Where(row => row.Reference == ModeTable.Unwoven).Select(row => $"{row.Name} {string.Join(' ', row.Modes)}"));

    [Fact]
    public void Each_woven_library_has_a_goal_with_kernel_TLS_on_and_off() =>
        Assert.Equal(
            [
                "lib-npgsql-copy sslstream <= 1.005", "lib-npgsql-copy ktls <= 0.965", "lib-redis-64k sslstream <= 1.005", "lib-redis-64k ktls <= 0.945",
            ],
            Goal.All.Where(goal => Row.Find(goal.Scenario).IsLibrary)
                .Select(goal => $"{goal.Scenario} {goal.Mode} {goal.Describe(Measurement.Instructions)}"));

    [Fact]
    public void The_program_has_the_libraries_woven_and_the_originals_beside_them()
    {
        string program = Path.GetDirectoryName(typeof(Row).Assembly.Location)!;
        Assert.All([typeof(NpgsqlConnection), typeof(ConnectionMultiplexer)], type =>
        {
            string name = $"{type.Assembly.GetName().Name}.dll";
            Assert.True(LibraryProcess.IsWoven(Path.Combine(program, name)), name);
            Assert.False(LibraryProcess.IsWoven(Path.Combine(program, LibraryProcess.Originals, name)), name);
        });
    }

    [Fact]
    public void A_process_with_the_original_libraries_differs_by_its_dependencies()
    {
        ProcessStartInfo start = BenchProcess.DescribeChild("measure", "lib-redis-64k", ModeTable.Unwoven);

        string path = start.ArgumentList[start.ArgumentList.IndexOf("--depsfile") + 1];
        JsonNode dependencies = JsonNode.Parse(File.ReadAllText(path))!;
        string folder = Path.GetDirectoryName(typeof(Row).Assembly.Location)!;
        string[] used =
        [
            .. from target in dependencies["targets"]!.AsObject()
               from package in target.Value!.AsObject()
               from file in package.Value!["runtime"]?.AsObject() ?? []
               select Path.GetFullPath(file.Value!["localPath"]!.GetValue<string>(), Path.GetDirectoryName(path)!),
        ];
        Assert.All(used, file => Assert.True(File.Exists(file), file));
        Assert.Equal(
            ["unwoven/Npgsql.dll", "unwoven/StackExchange.Redis.dll"],
            used.Select(file => Path.GetRelativePath(folder, file)).Where(file => file.Contains('/', StringComparison.Ordinal)).Order());
        Assert.DoesNotContain("--depsfile", BenchProcess.DescribeChild("measure", "lib-redis-64k", ModeTable.Stock).ArgumentList);
    }

    [Theory]
    [InlineData(ModeTable.Unwoven, null)]
    [InlineData(ModeTable.Stock, null)]
    [InlineData(ModeTable.Kernel, "1")]
    [InlineData(ModeTable.KernelWithoutPadding, "1")]
    public void Only_the_modes_with_kernel_TLS_have_the_switch(string mode, string? expected)
    {
        const string Variable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
        Assert.Equal(expected, BenchProcess.DescribeChild("measure", "lib-redis-64k", mode).Environment.TryGetValue(Variable, out string? value) ? value : null);
        Assert.Equal(expected, BenchProcess.DescribeSteady(["measure", "lib-redis-64k", mode]).Environment.TryGetValue(Variable, out value) ? value : null);
        Assert.False(BenchProcess.DescribeSteady(["measure", "h1-get-64k", mode]).Environment.ContainsKey(Variable));
    }

    [Theory]
    [InlineData("lib-redis-64k", ModeTable.Kernel, false)]
    [InlineData("lib-redis-64k", ModeTable.KernelWithoutPadding, true)]
    [InlineData("h1-get-64k", ModeTable.KernelWithoutPadding, false)]
    public void Only_a_library_that_expects_no_padding_is_named_in_the_configuration(string name, string mode, bool isNamed)
    {
        ProcessStartInfo start = BenchProcess.DescribeChild("measure", name, mode);

        int option = start.ArgumentList.IndexOf("--runtimeconfig");
        Assert.Equal(isNamed, option >= 0);
        if (isNamed)
        {
            JsonNode configuration = JsonNode.Parse(File.ReadAllText(start.ArgumentList[option + 1]))!;
            Assert.Equal("All", configuration["runtimeOptions"]!["configProperties"]![LibraryProcess.NoPaddingNames]!.GetValue<string>());
        }
    }

    /// <summary>The libraries of this process are woven, and kernel TLS is off.</summary>
    [Theory]
    [InlineData("lib-npgsql-copy", ModeTable.Unwoven)]
    [InlineData("lib-npgsql-copy", ModeTable.Kernel)]
    [InlineData("lib-npgsql-copy", ModeTable.KernelWithoutPadding)]
    [InlineData("lib-redis-64k", ModeTable.Unwoven)]
    [InlineData("lib-redis-64k", ModeTable.Kernel)]
    public void A_process_that_was_started_for_another_mode_is_refused(string name, string mode)
    {
        BenchFailedException refused = Assert.Throws<BenchFailedException>(() => Row.Find(name).Create!(mode));
        Assert.Contains("was not started as the table's are", refused.Message, StringComparison.Ordinal);
    }

    /// <summary>Without kernel TLS a woven library falls back. The row detects that by the kernel's counters.</summary>
    [Theory]
    [MemberData(nameof(Cells))]
    public async Task A_library_is_measured_in_its_mode_or_not_at_all(string name, string mode)
    {
        SkipWithout(name == "lib-redis-64k" ? RedisProgram.Program : PostgresProgram.Program);
        Task<string> Measure() => BenchProcess.RunSteadyAsync([BenchCommand.Measure, name, mode, BenchCommand.WarmUpRounds, "1"], TestContext.Current.CancellationToken);
        if (LibraryProcess.IsKernel(mode) && !KtlsPlatform.Probe().IsSupported)
        {
            Assert.False(s_isCell, "the cell has no kernel TLS");
            Assert.Contains("ended with exit code 1", (await Assert.ThrowsAsync<BenchFailedException>(Measure)).Message, StringComparison.Ordinal);
            return;
        }

        Measurement measured = JsonSerializer.Deserialize(await Measure(), BenchJson.Default.Measurement)!;

        Assert.Equal((name, mode), (measured.Scenario, measured.Mode));
        Assert.True(measured.PerOp > 0, measured.ToString());
    }

    private static void SkipWithout(string program)
    {
        if (!(Environment.GetEnvironmentVariable("PATH") ?? "").Split(':').Any(folder => File.Exists(Path.Combine(folder, program))))
        {
            Assert.False(s_isCell, $"{program} is missing in the cell");
            Assert.Skip($"{program} is not installed here.");
        }
    }
}
