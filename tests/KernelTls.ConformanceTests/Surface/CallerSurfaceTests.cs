using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares what a caller sees with what SslStream shows: every public member at each point of a connection's life, the
/// arguments of callbacks, and the exceptions of handshakes and reads, by the types of the whole chain.
/// </summary>
[Trait("loop", "outer-kernel")]
public class CallerSurfaceTests(ITestOutputHelper output)
{
    public static TheoryData<TlsMode> Costly => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(Costly))]
    public Task A_caller_sees_what_SslStream_shows(TlsMode mode) => SurfaceRun.CompareAsync(
        output, SurfaceDifferences.Caller, mode, CallerCases.All, static (each, engine) => each.RunAsync(engine));

    /// <summary>A member of a later runtime must be read or called, or it must be said why not.</summary>
    [Fact]
    public void Each_public_member_of_this_runtime_s_SslStream_is_known() => Assert.Empty(CallerMembers.Unknown());

    /// <summary>
    /// Three members remain: two return what the library publishes in the base class, and one calls a method that it overrides.
    /// </summary>
    [Fact]
    public void Each_method_and_constructor_of_SslStream_is_one_of_KtlsStream()
    {
        Assert.Empty(CallerMembers.OutOfReach().Except(["get_NegotiatedApplicationProtocol", "get_TargetHostName", "Write"]));
        Assert.Empty(CallerMembers.MissingConstructors());
    }
}
