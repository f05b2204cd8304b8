using KernelTls.LoadTest.Rehearsal;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>
/// Tests that a command line that would measure something other than requested is refused with its cause.
/// </summary>
public class CommandLineTests
{
    [Theory]
    [InlineData("http-client --httpVersion 3.0", "3.0")]
    [InlineData("http-client --httpVersion 2", "'2'")]
    [InlineData("http-client --useHttps yes", "yes")]
    [InlineData("http-client --useHttps", "--useHttps")]
    [InlineData("http-client --serverPort 0", "--serverPort is 0")]
    [InlineData("http-client --serverPort 65536", "--serverPort is 65536")]
    [InlineData("http-client --serverPort five", "five")]
    [InlineData("http-client --numberOfHttpClients 0", "--numberOfHttpClients is 0")]
    [InlineData("http-client --concurrencyPerHttpClient -1", "--concurrencyPerHttpClient is -1")]
    [InlineData("http-client --warmup -1", "--warmup is -1")]
    [InlineData("http-client --duration 0", "--duration is 0")]
    [InlineData("http-client --duration NaN", "--duration is NaN")]
    [InlineData("http-client --scenario put", "put")]
    [InlineData("http-client --scenario post", "--requestContentSize is 0")]
    [InlineData("http-client --requestContentSize 5", "--requestContentSize is 5")]
    [InlineData("http-client --scenario post --requestContentSize 5 --requestContentWriteSize 0", "--requestContentWriteSize is 0")]
    [InlineData("http-client --header Connection", "expected NAME:VALUE")]
    [InlineData("http-client --path get", "expected something that begins with a slash")]
    [InlineData("http-client --responseSize -1", "--responseSize is -1")]
    [InlineData("http-client --concurrency 5", "--concurrency")]
    [InlineData("http-client --responseSize 5,x", "--responseSize is 5,x")]
    [InlineData("http-client --responseSize 5,6 --path /x", "--responseSize has several sizes")]
    [InlineData("http-client --scenario grpc", "--httpVersion is 1.1")]
    [InlineData("http-client --rate -1", "--rate is -1")]
    [InlineData("http-generator-client --program ab", "ab")]
    [InlineData("http-generator-client --streams 101", "--streams is 101")]
    [InlineData("http-server --filename ../x", "expected a name without a path")]
    [InlineData("http-server --sizeInBytes -1", "--sizeInBytes is -1")]
    [InlineData("sslstream-client --scenario read-write", "read-write")]
    [InlineData("sslstream-client --scenario Rps --sendBufferSize 0", "Rps needs both")]
    [InlineData("sslstream-client --sendBufferSize 0 --receiveBufferSize 0", "ReadWrite needs one of them")]
    [InlineData("sslstream-client --tlsVersion 1.1", "1.1")]
    [InlineData("sslstream-client --connections 0", "--connections is 0")]
    [InlineData("sslstream-server --allowTlsResume maybe", "maybe")]
    [InlineData("sslstream-server --scenario Rps", "--scenario")]
    [InlineData("rehearse --mtu 500", "--mtu is 500")]
    [InlineData("rehearse --mode fast", "fast")]
    public void A_wrong_value_is_refused(string line, string named)
    {
        string[] errors = [.. LoadTestCommand.Create().Parse(line.Split(' ')).Errors.Select(e => e.Message)];

        Assert.Contains(errors, e => e.Contains(named, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("http-client --scenario post --requestContentSize 1")]
    [InlineData("http-client --warmup 0 --duration 0.5 --header A:1 --header B:2")]
    [InlineData("http-client --responseSize 5,6 --path /get --rate 100")]
    [InlineData("http-client --scenario grpc --httpVersion 2.0 --requestContentSize 5")]
    [InlineData("http-server --serverPort 0")]
    [InlineData("sslstream-client --scenario Rps")]
    [InlineData("sslstream-client --sendBufferSize 0")]
    public void A_right_one_is_taken(string line) => Assert.Empty(LoadTestCommand.Create().Parse(line.Split(' ')).Errors);

    [Theory]
    [InlineData("http-client --duration 0", 2, "--duration is 0")]
    [InlineData("nothing", 2, "nothing")]
    [InlineData("http-client --serverPort 1 --useHttps true --warmup 0 --duration 0.1", 1, "no request was answered well")]
    [InlineData("sslstream-client --serverPort 1 --warmup 0 --duration 0.1", 1, "load test failed: ")]
    [InlineData("http-generator-client --program wrk --serverPort 1 --warmup 0 --duration 1", 1, "load test failed: ")]
    [InlineData("http-generator-client --program h2load --useHttps true --serverPort 1 --warmup 0 --duration 1", 1, "load test failed: ")]
    public async Task The_exit_code_says_whether_there_is_a_result(string line, int code, string said)
    {
        using LoadTestProcess process = LoadTestProcess.Start(Scene.Program, null, [], line.Split(' '));

        Assert.Equal(code, await process.ExitAsync(Limits.Wait));
        Assert.Contains(said, process.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("#StartJobStatistics", process.Said, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("KtlsOptions__Modes", "Required", "Modes")]
    [InlineData("KtlsOptions__Mode", "Sometimes", "Sometimes")]
    [InlineData("KtlsOptions__Fallback", "Plain", "Plain")]
    [InlineData("KtlsOptions__RecordLimit", "0", "RecordLimit")]
    public async Task A_variable_that_is_no_option_is_refused(string name, string value, string said)
    {
        using LoadTestProcess process = LoadTestProcess.Start(
            Scene.Program, null, new Dictionary<string, string> { [name] = value }, ["http-server", "--serverPort", "0"]);

        Assert.Equal(1, await process.ExitAsync(Limits.Wait));
        Assert.Contains(said, process.Said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_wrong_answer_is_no_result()
    {
        using LoadTestProcess server = LoadTestProcess.Start(Scene.Program, null, [], ["http-server", "--serverPort", "0", "--responseSize", "5"]);
        int port = await server.ListenAsync(Limits.Wait);
        using LoadTestProcess client = LoadTestProcess.Start(
            Scene.Program, null, [], ["http-client", "--serverPort", $"{port}", "--warmup", "0", "--duration", "0.1", "--responseSize", "6"]);

        Assert.Equal(1, await client.ExitAsync(Limits.Wait));
        Assert.Contains("gave 200 with 5 bytes, expected 200 with 6", client.Said, StringComparison.Ordinal);
    }
}
