namespace KernelTls.PackageTests;

/// <summary>
/// Tests that README.md says, of each kind of connection, what the tests show that <c>ktls run</c> and <c>ktls weave</c> reach in an application
/// that is already built.
/// </summary>
public class ReachTableTests
{
    private const string Console = "HookTests.A_console_application_runs_as_before";
    private const string Factory = "WeaveFolderTests.A_client_of_IHttpClientFactory_without_ASP_NET_Core_and_an_own_HttpClient";
    private const string Surface = "SurfaceTests.These_types_have_replacements";

    // The row's first words, then for each command the cell and the tests that show it.
    private static readonly (string Row, string Run, string RunTest, string Weave, string WeaveTest)[] s_rows =
    [
        ("Kestrel's https endpoints", "yes", "HookTests.A_web_application", "yes; not with `CreateSlimBuilder`", "WeaveFolderTests.The_template_of_a_web_api WeaveFolderTests.The_slim_builder_is_not_reached"),
        ("clients of IHttpClientFactory", "yes, also of a worker", "HookTests.The_client_factory_of_a_worker", "yes, also of a worker; not with `CreateSlimBuilder`", Factory),
        ("`new HttpClient()`", "no", Console, "yes", Factory),
        ("YARP, to its destinations", "no", "HookTests.The_server_side_of_a_proxy", "yes", "WeaveFolderTests.Both_sides_of_a_proxy"),
        ("`KtlsStream` in code", "yes", "HookFaultTests.An_application_with_the_same_or_a_newer_version_keeps_it", "yes", "PublishTests.Console"),
        ("`SslStream` in code", "no", Console, "yes", "WeaveCommandTests.A_woven_folder_uses_the_library_where_the_variable_says_so_and_undo_gives_the_same_folder_back"),
        ("Npgsql, ", "no", Console, "yes", "WeaveFolderTests.Eight_libraries"),
        ("`ClientWebSocket`", "no", Console, "yes, with the same exceptions", "WovenWebSocketTests.On_OpenSSL_its_connections_are_the_librarys"),
        ("`SmtpClient`", "no", "StockHandshakeMonitorTests.A_connection_of_the_framework_names_the_assembly_that_called_it", "no", Surface),
    ];

    [Fact]
    public void The_columns_of_README_are_true()
    {
        string[][] table =
        [
            .. File.ReadLines(Path.Combine(Repository.Root, "README.md"))
                .SkipWhile(l => !l.Contains("| with `ktls run` | with `ktls weave` |", StringComparison.Ordinal)).TakeWhile(l => l.StartsWith('|'))
                .Select(l => l.Trim('|').Split('|', StringSplitOptions.TrimEntries)),
        ];

        Assert.Equal(["with `ktls run`", "with `ktls weave`"], table[0][^2..]);
        Assert.Equal(s_rows.Length, table.Length - 2);
        Assert.All(s_rows.Zip(table[2..]), pair =>
        {
            Assert.StartsWith(pair.First.Row, pair.Second[0], StringComparison.Ordinal);
            Assert.Equal([pair.First.Run, pair.First.Weave], pair.Second[^2..]);
        });
    }

    [Fact]
    public void Each_cell_has_its_test()
    {
        string[] sources = Directory.GetFiles(Path.Combine(Repository.Root, "tests"), "*Tests.cs", SearchOption.AllDirectories);
        Assert.All(s_rows.SelectMany(r => r.WeaveTest.Split(' ').Append(r.RunTest)), test =>
        {
            string[] name = test.Split('.');
            string source = Assert.Single(sources, path => Path.GetFileNameWithoutExtension(path) == name[0]);
            Assert.Contains($" {name[1]}(", File.ReadAllText(source), StringComparison.Ordinal);
        });
    }
}
