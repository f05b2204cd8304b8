namespace KernelTls.Tool.Tests;

/// <summary>Tests invalid arguments: exit code 2, and one line that names the argument and what was expected.</summary>
public class UsageTests
{
    private const string Address = "expected a name or an address, a colon and a port from 1 to 65535";
    private const string Seconds = "expected a number of seconds above 0, at most 3600";

    [Theory]
    [InlineData("'example.com' is not HOST:PORT: " + Address, "probe", "example.com")]
    [InlineData("'example.com:0' is not HOST:PORT: " + Address, "probe", "example.com:0")]
    [InlineData("'::1:443' is not HOST:PORT: " + Address, "connect", "::1:443")]
    [InlineData("'a b:443' is not HOST:PORT: " + Address, "connect", "a b:443")]
    [InlineData("--tls '1.1': expected 1.2 or 1.3", "probe", "localhost:1", "--tls", "1.1")]
    [InlineData("--timeout '0': " + Seconds, "probe", "localhost:1", "--timeout", "0")]
    [InlineData("--wait 'long': " + Seconds, "probe", "localhost:1", "--wait", "long")]
    [InlineData("--interval '-1': " + Seconds, "top", "--interval", "-1")]
    [InlineData("--path 'x y': expected a path that begins with /", "probe", "localhost:1", "--path", "x y")]
    [InlineData("--ca '/nonexistent': expected a file with PEM certificates", "probe", "localhost:1", "--ca", "/nonexistent")]
    [InlineData("--server-name 'a/b': expected a host name", "probe", "localhost:1", "--server-name", "a/b")]
    [InlineData("--ca '/proc/version' contains no PEM certificate. Expected", "probe", "localhost:1", "--ca", "/proc/version")]
    [InlineData("--mode 'on': expected disabled, preferred or required", "connect", "localhost:1", "--mode", "on")]
    [InlineData("--alpn 'h2,,x': expected names of 1 to 255 characters", "connect", "localhost:1", "--alpn", "h2,,x")]
    [InlineData("'/nonexistent': expected a directory that exists", "serve", "/nonexistent")]
    [InlineData("Required argument 'DIR' missing", "serve")]
    [InlineData("--address 'localhost': expected an IP address", "serve", "/tmp", "--address", "localhost")]
    [InlineData("--port '65536': expected a port from 0 to 65535", "serve", "/tmp", "--port", "65536")]
    [InlineData("--port 'https': expected a port from 0 to 65535", "serve", "/tmp", "--port", "https")]
    [InlineData("missing for option: '--port'", "serve", "/tmp", "--port")]
    [InlineData("--key '/proc/version': expected --certificate too", "serve", "/tmp", "--key", "/proc/version")]
    [InlineData("--password-file '/proc/version': expected --certificate too", "probe", "localhost:1", "--password-file", "/proc/version")]
    [InlineData("--certificate '/nonexistent' cannot be read: ", "serve", "/tmp", "--certificate", "/nonexistent", "--key", "/proc/version")]
    [InlineData("--certificate '/proc' cannot be read: ", "connect", "localhost:1", "--certificate", "/proc")]
    [InlineData("--key '/nonexistent' cannot be read: ", "probe", "localhost:1", "--certificate", "/proc/version", "--key", "/nonexistent")]
    [InlineData("--certificate '/proc/version' with --key '/proc/version' cannot be used: ", "serve", "/tmp", "--certificate", "/proc/version", "--key", "/proc/version")]
    [InlineData("--process '-1': expected a number above 0", "top", "--process", "-1")]
    [InlineData("--process 'kestrel': expected a number above 0", "top", "--process", "kestrel")]
    [InlineData("--count '0': expected a number above 0", "top", "--count", "0")]
    [InlineData("--row 'everything': expected handshake, ping-64, get-64k, file-4m", "bench", "--row", "everything")]
    [InlineData("'/nonexistent': expected a directory that exists", "weave", "/nonexistent")]
    [InlineData("--include names assemblies, and --all means every one: expected one of the two", "weave", "/tmp", "--all", "--include", "a")]
    [InlineData("--undo restores the whole folder: expected no other option", "weave", "/tmp", "--undo", "--dry-run")]
    [InlineData("Unrecognized command or argument '--frob'", "info", "--frob")]
    [InlineData("Expected one of the commands info, probe, connect, serve, top, bench, run, bundle, weave")]
    [InlineData("'explain': expected one of the commands info, probe, connect, serve, top, bench, run, bundle, weave", "explain")]
    public async Task What_was_expected_is_said(string expected, params string[] arguments) =>
        (await Ktls.RunAsync(["--json", .. arguments])).AssertFailure(ExitCode.WrongUsage, expected);

    [Theory]
    [InlineData("serve", "/tmp", "--port", "https")]
    [InlineData("connect", "localhost:1", "--mode", "on")]
    public async Task Without_json_the_line_is_all(params string[] arguments)
    {
        Ktls.Result result = (await Ktls.RunAsync(arguments)).AssertExit(ExitCode.WrongUsage);

        Assert.Empty(result.Output);
        Assert.Matches($@"\Aktls {arguments[0]}: [^\n]*: expected [^\n]*\. See 'ktls {arguments[0]} --help'\.\n\z", result.Errors);
    }

    [Fact]
    public async Task Help_lists_commands_and_exit_codes()
    {
        Ktls.Result result = (await Ktls.RunAsync("--help")).AssertExit(ExitCode.Ok);

        foreach (string word in new[] { "info", "probe", "connect", "serve", "top", "bench", "weave", "--json", "130  interrupted" })
        {
            Assert.Contains(word, result.Output, StringComparison.Ordinal);
        }

        Assert.Equal(ExitCode.Ok, (await Ktls.RunAsync("serve", "--help")).ExitCode);
    }
}
