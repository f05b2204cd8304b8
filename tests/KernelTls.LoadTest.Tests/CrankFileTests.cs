using System.CommandLine;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Compares the files of benchmarks/crank with what crank supports and what the programs accept.</summary>
public class CrankFileTests
{
    // The properties of Microsoft.Crank.Models.Job that are in use.
    private static readonly string[] s_jobProperties =
        ["sources", "project", "framework", "buildKey", "noBuild", "readyStateText", "isConsoleApp", "waitForExit", "timeout", "variables", "arguments"];

    private static readonly string[] s_serviceProperties = ["job", "variables"];

    private static readonly string[] s_agentProperties = ["environmentVariables", "endpoints"];

    private static readonly string[] s_ofBoth = ["serverAddress", "serverPort", "useHttps", "httpVersion", "tlsVersion", "allowTlsResume"];

    private static readonly string[] s_services = ["server", "client"];

    public static TheoryData<string> Scenarios => [.. CrankFile.LoadTest.Scenarios.Keys];

    public static TheoryData<string> Jobs => [.. CrankFile.LoadTest.Jobs.Keys];

    public static TheoryData<string> Profiles => [.. CrankFile.LoadTest.Profiles.Keys];

    [Fact]
    public void Nothing_is_in_it_that_crank_does_not_know() =>
        Assert.All(CrankFile.All, file => Assert.Equal(["variables", "jobs", "scenarios", "profiles"], file.Sections));

    /// <summary>
    /// The sources are this repository's own folders. The program has the project's name, by which the agent finds it.
    /// </summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void A_job_builds_from_this_repository(string name)
    {
        Dictionary<string, object> job = CrankFile.Map(CrankFile.LoadTest.Jobs[name]);
        (string source, object where) = Assert.Single(CrankFile.MapOf(job, "sources"));
        Dictionary<string, object> folder = CrankFile.Map(where);
        string root = Path.GetFullPath(Path.Combine(Path.GetDirectoryName(CrankFile.LoadTest.FullName)!, (string)folder["localFolder"]));
        string project = (string)job["project"];

        Assert.All(job.Keys, key => Assert.Contains(key, s_jobProperties));
        Assert.Equal(["localFolder", "destinationFolder"], folder.Keys);
        Assert.Equal(source, folder["destinationFolder"]);
        Assert.StartsWith($"{source}/", project, StringComparison.Ordinal);
        Assert.True(File.Exists(Path.Combine(root, project[(source.Length + 1)..])), $"there is no {project} in {root}");
        Assert.Contains("<TargetFramework>net10.0</TargetFramework>", File.ReadAllText(Path.Combine(root, project[(source.Length + 1)..])), StringComparison.Ordinal);
        Assert.Equal("net10.0", job["framework"]);
        Assert.Equal("KernelTls.LoadTest", Path.GetFileNameWithoutExtension(project));
        Assert.Equal("KernelTls.LoadTest", typeof(LoadTestCommand).Assembly.GetName().Name);
    }

    /// <summary>
    /// An agent builds again unless a run names a key and the agent has built under it: it does not compare sources. crank reads
    /// <c>noBuild</c> before it fills templates, so the key alone is a variable.
    /// </summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void A_build_is_reused_only_by_its_key(string name)
    {
        Dictionary<string, object> job = CrankFile.Map(CrankFile.LoadTest.Jobs[name]);

        Assert.Equal("{{buildKey}}", job["buildKey"]);
        Assert.Equal(true, job["noBuild"]);
        Assert.Equal("", CrankFile.LoadTest.Variables["buildKey"]);
    }

    /// <summary>A server reports when it is ready. A run waits for a client, but not forever.</summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void A_job_starts_and_ends_as_crank_expects(string name)
    {
        Dictionary<string, object> job = CrankFile.Map(CrankFile.LoadTest.Jobs[name]);
        if (name.EndsWith("Server", StringComparison.Ordinal))
        {
            Assert.Equal("Listening on", job["readyStateText"]);
            Assert.DoesNotContain("waitForExit", job.Keys);
        }
        else
        {
            Assert.Equal(true, job["isConsoleApp"]);
            Assert.Equal(true, job["waitForExit"]);
            Assert.InRange(Convert.ToInt32(job["timeout"], null), 60, 3600);
        }
    }

    /// <summary>
    /// Every option is filled from the variable of its name, all options of the command are present, and every variable
    /// is used.
    /// </summary>
    [Theory]
    [MemberData(nameof(Jobs))]
    public void A_job_s_variables_are_the_program_s_options(string name)
    {
        Dictionary<string, object> job = CrankFile.Map(CrankFile.LoadTest.Jobs[name]);
        string template = (string)job["arguments"];
        string[] words = template.Split(' ');
        Command command = LoadTestCommand.Create().Subcommands.Single(c => c.Name == words[0]);
        string[] named = [.. CrankFile.NamesIn(template)];
        string[] known = [.. CrankFile.LoadTest.Variables.Keys.Except(["buildKey"]), .. CrankFile.MapOf(job, "variables").Keys];

        // Two jobs have one command.
        int first = words[0] == "http-generator-client" ? 3 : 1;
        for (int i = first; i < words.Length; i++)
        {
            if (words[i].StartsWith("--", StringComparison.Ordinal))
            {
                Assert.Equal($"{{{{{words[i][2..]}}}}}", words[++i]);
            }
            else
            {
                Assert.Equal("{{headersDictionary[requestHeaders]}}", words[i]);
            }
        }

        Assert.All(named, n => Assert.Contains(n, known));
        Assert.Empty(CrankFile.MapOf(job, "variables").Keys.Except(named));

        // One command serves two jobs. Headers come from the dictionary.
        string[] left = name switch
        {
            "httpServer" => ["--filename", "--sizeInBytes"],
            "fileServer" => ["--responseSize"],
            "httpClient" => ["--header"],
            _ => [],
        };
        Assert.Equal(left, command.Options.Select(o => o.Name).Where(o => o != "--help").Except(words).Order());
    }

    [Theory]
    [MemberData(nameof(Scenarios))]
    public void A_scenario_is_taken_by_the_programs(string name)
    {
        Dictionary<string, object> scenario = CrankFile.Map(CrankFile.LoadTest.Scenarios[name]);
        Assert.Equal(s_services, scenario.Keys);
        foreach (string service in s_services)
        {
            Dictionary<string, object> reference = CrankFile.Map(scenario[service]);
            Assert.All(reference.Keys, key => Assert.Contains(key, s_serviceProperties));
            Dictionary<string, object> job = CrankFile.Map(CrankFile.LoadTest.Jobs[(string)reference["job"]]);
            Assert.All(CrankFile.MapOf(reference, "variables").Keys, key => Assert.Contains(key, CrankFile.MapOf(job, "variables").Keys));

            string[] arguments = CrankFile.LoadTest.Render(name, service, "standard").Arguments;

            Assert.StartsWith(name[0] is 'h' or 'w' && name != "handshake" ? "http-" : "sslstream-", arguments[0], StringComparison.Ordinal);
            Assert.EndsWith(service, arguments[0], StringComparison.Ordinal);
            Assert.Empty(LoadTestCommand.Create().Parse(arguments).Errors);
        }
    }

    /// <summary>
    /// The response that the client expects is the one that the server is configured to send, with the same version.
    /// </summary>
    [Theory]
    [MemberData(nameof(Scenarios))]
    public void Client_and_server_of_a_scenario_agree(string name)
    {
        IReadOnlyDictionary<string, object> server = CrankFile.LoadTest.Render(name, "server", "standard").Variables;
        IReadOnlyDictionary<string, object> client = CrankFile.LoadTest.Render(name, "client", "standard").Variables;
        foreach (string both in s_ofBoth.Where(b => b != "httpVersion" || client.ContainsKey(b)))
        {
            Assert.Equal(server.GetValueOrDefault(both), client.GetValueOrDefault(both));
        }

        // A generator says nothing about versions and sizes.
        if (client.ContainsKey("threads"))
        {
            string path = server.TryGetValue("filename", out object? served) ? $"/{served}" : Convert.ToInt32(client["requestContentSize"], null) > 0 ? "/post" : "/get";
            Assert.Equal(path, client["path"]);
            Assert.Equal(name.StartsWith("wrk", StringComparison.Ordinal) ? "1.1" : "2.0", server["httpVersion"]);
            return;
        }

        if (name == "h1-get-mixed")
        {
            // The path names each size.
            Assert.Equal("/get", client["path"]);
            return;
        }

        if (client.TryGetValue("responseSize", out object? size))
        {
            Assert.Equal(server.TryGetValue("sizeInBytes", out object? ofFile) ? ofFile : server["responseSize"], size);
            Assert.Equal(server.TryGetValue("filename", out object? file) ? $"/{file}" : $"/{client["scenario"]}".Replace("grpc", "get", StringComparison.Ordinal), client["path"]);
        }
        else
        {
            Assert.Equal($"{client["sendBufferSize"]}", $"{server["receiveBufferSize"]}");
            Assert.Equal($"{client["receiveBufferSize"]}", $"{server["sendBufferSize"]}");
        }
    }

    /// <summary>The number of connections of HTTP/2 is that of the clients. A client that may open more opens one or two, by chance.</summary>
    [Theory]
    [MemberData(nameof(Scenarios))]
    public void Connections_of_HTTP2_are_fixed(string name)
    {
        IReadOnlyDictionary<string, object> variables = CrankFile.LoadTest.Render(name, "client", "standard").Variables;
        Assert.True($"{variables.GetValueOrDefault("httpVersion")}" != "2.0" || variables["http20EnableMultipleConnections"] is false, name);

        // Kestrel's default is 100 requests on a connection.
        Assert.InRange(Convert.ToInt32(variables.GetValueOrDefault("concurrencyPerHttpClient", 0), null), 0, 100);
    }

    [Theory]
    [InlineData("h1-get-0", "1.1", "get", 0, 0, "none")]
    [InlineData("h1-get-64k", "1.1", "get", 65536, 0, "none")]
    [InlineData("h1-get-close", "1.1", "get", 0, 0, "connectionclose")]
    [InlineData("h2-get-0", "2.0", "get", 0, 0, "none")]
    [InlineData("h2-get-64k", "2.0", "get", 65536, 0, "none")]
    [InlineData("h1-post-64k", "1.1", "post", 0, 65536, "none")]
    [InlineData("h2-post-64k", "2.0", "post", 0, 65536, "none")]
    public void The_matrix_is_that_of_the_report(
        string name, string version, string scenario, int responseSize, int requestSize, string headers)
    {
        IReadOnlyDictionary<string, object> variables = CrankFile.LoadTest.Render(name, "client", "standard").Variables;
        (string Name, object Value)[] expected =
        [
            ("httpVersion", version), ("scenario", scenario), ("responseSize", responseSize), ("requestContentSize", requestSize),
            ("requestHeaders", headers), ("useHttps", true), ("numberOfHttpClients", 1), ("concurrencyPerHttpClient", 100),
            ("warmup", 15), ("duration", 15), ("requestContentWriteSize", 81920), ("collectRequestTimings", true),
        ];
        Assert.All(expected, e => Assert.Equal($"{e.Value}", $"{variables[e.Name]}"));
    }

    [Theory]
    [InlineData("read-write", "ReadWrite", 32768, 32768)]
    [InlineData("client-read", "ReadWrite", 0, 32768)]
    [InlineData("client-write", "ReadWrite", 32768, 0)]
    [InlineData("handshake", "Handshake", 32768, 32768)]
    [InlineData("rps", "Rps", 32768, 32768)]
    public void The_scenarios_of_streams_are_the_reference_s(string name, string scenario, int send, int receive)
    {
        IReadOnlyDictionary<string, object> variables = CrankFile.LoadTest.Render(name, "client", "standard").Variables;
        (string Name, object Value)[] expected =
        [
            ("scenario", scenario), ("sendBufferSize", send), ("receiveBufferSize", receive), ("tlsVersion", "1.3"), ("connections", 1),
            ("allowTlsResume", true), ("warmup", 15), ("duration", 15),
        ];
        Assert.All(expected, e => Assert.Equal($"{e.Value}", $"{variables[e.Name]}"));
    }

    /// <summary>crank refuses a profile that does not mention one of a scenario's services.</summary>
    [Theory]
    [MemberData(nameof(Profiles))]
    public void A_profile_speaks_of_both_services(string name)
    {
        Dictionary<string, object> profile = CrankFile.Map(CrankFile.LoadTest.Profiles[name]);
        Dictionary<string, object> agents = CrankFile.MapOf(profile, "agents");

        Assert.Equal(["agents"], profile.Keys);
        Assert.Equal(s_services, agents.Keys);
        Assert.All(agents.Values, a => Assert.All(CrankFile.Map(a).Keys, key => Assert.Contains(key, s_agentProperties)));
        Assert.All(
            agents.Values.SelectMany(a => CrankFile.Map(a).TryGetValue("endpoints", out object? e) ? (List<object>)e : []),
            endpoint => Assert.All(CrankFile.NamesIn((string)endpoint), n => Assert.Contains(n, CrankFile.LoadTest.Variables.Keys)));
    }

    [Theory]
    [InlineData("standard", "", "")]
    [InlineData("directopenssl", "direct", "direct")]
    [InlineData("directopenssl-client", "", "direct")]
    [InlineData("directopenssl-server", "direct", "")]
    [InlineData("ktls", "kernel", "kernel")]
    [InlineData("ktls-client", "", "kernel")]
    [InlineData("ktls-server", "kernel", "")]
    public void A_mode_is_variables_of_the_environment(string profile, string ofServer, string ofClient)
    {
        Assert.Equal(Expected(ofServer), CrankFile.LoadTest.Render("h1-get-0", "server", profile).Environment);
        Assert.Equal(Expected(ofClient), CrankFile.LoadTest.Render("h1-get-0", "client", profile).Environment);

        static Dictionary<string, string> Expected(string mode) => mode switch
        {
            "direct" => new() { ["DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL"] = "1" },
            "kernel" => new() { ["DOTNET_SYSTEM_NET_SECURITY_KTLS"] = "1", ["KtlsOptions__Mode"] = "Required" },
            _ => [],
        };
    }

    [Fact]
    public void There_are_machines_to_run_on() =>
        Assert.Equal(["two-machines", "loopback"], CrankFile.LoadTest.Profiles.Keys.Where(p => !p.StartsWith("ktls", StringComparison.Ordinal)
            && !p.StartsWith("directopenssl", StringComparison.Ordinal) && p != "standard"));
}
