using KernelTls.Tests;

namespace KernelTls.Weave.Tests;

/// <summary>Tests streams that a library puts between its SslStream and the socket, against the stock stream over the same one.</summary>
[Trait("loop", "outer")]
public sealed class WrapperTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task The_socket_under_a_stream_that_is_known_is_used() => Assert.Equal(
        "HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled MailKit\nping\n", await RunAsync("talk", woven: true));

    [Fact]
    public async Task A_stream_that_is_not_known_is_named() => Assert.Equal(
        "Fallback: NotSocketStream The inner stream is a Sample+Unknown. MailKit\nping\n", await RunAsync("unknown", woven: true));

    [Theory]
    [InlineData("timeout", "IOException TimeoutException\nconnected: False\n")]
    [InlineData("cancellation", "OperationCanceledException \n")]
    public async Task Time_limits_of_the_stream_in_between_hold_as_they_do_under_SslStream(string what, string expected)
    {
        string stock = await RunAsync(what, woven: false);
        string woven = await RunAsync(what, woven: true);

        Assert.StartsWith(expected, Kinds(stock), StringComparison.Ordinal);
        Assert.Equal(Kinds(stock), Kinds(woven[(woven.IndexOf('\n', StringComparison.Ordinal) + 1)..]));

        // A cancelled wait ends with OperationCanceledException or a class derived from it.
        static string Kinds(string said) => said.Replace("TaskCanceledException", "OperationCanceledException", StringComparison.Ordinal);
    }

    private Task<string> RunAsync(string what, bool woven)
    {
        Compiled program = WovenProgram.Compile("Wrapped.cs", "MailKit");
        return WovenProgram.RunAsync(
            _directory, "MailKit", woven ? program.Weave().Image! : program.Image, [what], [(Application.DirectVariable, "1")]);
    }
}
