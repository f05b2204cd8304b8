using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares what a caller of HttpClient sees with what the stock one shows: the response, or every member of the exception
/// and the types of its inner ones.
/// </summary>
[Trait("loop", "outer-kernel")]
public class HttpClientSurfaceTests(ITestOutputHelper output)
{
    public static TheoryData<TlsMode> Costly => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(Costly))]
    public Task A_caller_sees_what_the_stock_client_shows(TlsMode mode) => SurfaceRun.CompareAsync(
        output, SurfaceDifferences.HttpClient, mode, HttpClientCases.All, static (each, engine) => each.RunAsync(engine));
}
