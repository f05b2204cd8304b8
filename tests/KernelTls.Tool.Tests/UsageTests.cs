namespace KernelTls.Tool.Tests;

/// <summary>Tests invalid arguments: exit code 2, and the expectation in the message.</summary>
public class UsageTests
{
    [Theory]
    [InlineData("expected a name or an address, a colon and a port from 1 to 65535", "probe", "example.com")]
    [InlineData("expected a name or an address, a colon and a port from 1 to 65535", "probe", "example.com:0")]
    [InlineData("expected a name or an address, a colon and a port from 1 to 65535", "connect", "::1:443")]
    [InlineData("expected a name or an address, a colon and a port from 1 to 65535", "connect", "a b:443")]
    [InlineData("expected 1.2 or 1.3", "probe", "localhost:1", "--tls", "1.1")]
    [InlineData("expected a number of seconds above 0, at most 3600", "probe", "localhost:1", "--timeout", "0")]
    [InlineData("expected a number of seconds above 0, at most 3600", "probe", "localhost:1", "--wait", "long")]
    [InlineData("expected a path that begins with /", "probe", "localhost:1", "--path", "x y")]
    [InlineData("expected a file with PEM certificates", "probe", "localhost:1", "--ca", "/nonexistent")]
    [InlineData("expected a host name", "probe", "localhost:1", "--server-name", "a/b")]
    [InlineData("contains no PEM certificate", "probe", "localhost:1", "--ca", "/proc/version")]
    [InlineData("expected disabled, preferred or required", "connect", "localhost:1", "--mode", "on")]
    [InlineData("expected names of 1 to 255 characters", "connect", "localhost:1", "--alpn", "h2,,x")]
    [InlineData("expected a directory that exists", "serve", "/nonexistent")]
    [InlineData("expected an IP address", "serve", "/tmp", "--address", "localhost")]
    [InlineData("expected a port from 0 to 65535", "serve", "/tmp", "--port", "65536")]
    [InlineData("Cannot parse argument", "serve", "/tmp", "--port", "https")]
    [InlineData("--certificate and --key: expected both or neither", "serve", "/tmp", "--certificate", "/proc/version")]
    [InlineData("cannot be used", "serve", "/tmp", "--certificate", "/proc/version", "--key", "/proc/version")]
    [InlineData("expected a number above 0", "top", "--process", "-1")]
    [InlineData("expected a number above 0", "top", "--count", "0")]
    [InlineData("Must be one of", "bench", "--row", "everything")]
    [InlineData("Required command was not provided")]
    [InlineData("Unrecognized command", "explain")]
    public async Task What_was_expected_is_said(string expected, params string[] arguments)
    {
        Ktls.Result result = (await Ktls.RunAsync(arguments)).AssertExit(ExitCode.WrongUsage);

        result.AssertErrors(expected);
    }

    [Fact]
    public async Task Help_lists_commands_and_exit_codes()
    {
        Ktls.Result result = (await Ktls.RunAsync("--help")).AssertExit(ExitCode.Ok);

        foreach (string word in new[] { "info", "probe", "connect", "serve", "top", "bench", "--json", "130  interrupted" })
        {
            Assert.Contains(word, result.Output, StringComparison.Ordinal);
        }
    }
}
