using System.Collections.Concurrent;
using System.Diagnostics;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests that a trace of a handshake is the same for every engine. Listeners apply to the process, so these tests run
/// alone.
/// </summary>
[Collection(nameof(EventSourceTests))]
public sealed class ActivityTests : IDisposable
{
    private readonly ConcurrentQueue<Activity> _started = new();
    private readonly ActivityListener _listener = new()
    {
        ShouldListenTo = source => source.Name == "Experimental.System.Net.Security",
        Sample = (ref ActivityCreationOptions<ActivityContext> _) => ActivitySamplingResult.AllData,
    };

    public ActivityTests()
    {
        _listener.ActivityStarted = _started.Enqueue;
        ActivitySource.AddActivityListener(_listener);
    }

    public void Dispose() => _listener.Dispose();

    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task A_handshake_is_the_stock_streams_activity(SslProtocols protocol)
    {
        string[] stock = await DescribeAsync(TlsMode.Stock, protocol);
        string[] ours = await DescribeAsync(TlsMode.DirectOpenSsl, protocol);

        Assert.Equal(2, stock.Length);
        Assert.Equal(stock, ours);
    }

    [Fact]
    public async Task A_failed_handshake_is_the_stock_streams_activity()
    {
        string[] stock = await DescribeFailureAsync(TlsMode.Stock);
        string[] ours = await DescribeFailureAsync(TlsMode.DirectOpenSsl);

        Assert.Contains("error.type", Assert.Single(stock), StringComparison.Ordinal);
        Assert.Equal(stock, ours);
    }

    [Fact]
    public async Task An_activity_has_a_parent_and_ends_with_the_handshake()
    {
        using Activity parent = new Activity("parent").Start();

        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13);

        Assert.Same(parent, Activity.Current);
        Assert.Equal(2, _started.Count);
        Assert.All(_started, activity =>
        {
            Assert.Equal(parent.SpanId, activity.ParentSpanId);
            Assert.True(activity.IsStopped);
            Assert.True(activity.Duration > TimeSpan.Zero);
        });
    }

    private async Task<string[]> DescribeAsync(TlsMode mode, SslProtocols protocol)
    {
        _started.Clear();
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, protocol);
        return Describe();
    }

    private async Task<string[]> DescribeFailureAsync(TlsMode mode)
    {
        _started.Clear();
        await using TlsPair pair = await TlsPair.CreateAsync(mode, TlsMode.Stock);
        pair.ServerSocket.Dispose();
        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(default)));
        return Describe();
    }

    private string[] Describe() => [.. _started.Select(activity => string.Join(
        ' ',
        [
            activity.OperationName, $"'{activity.DisplayName}'", $"{activity.Kind}", $"{activity.Status}",
            .. activity.TagObjects.Select(tag => $"{tag.Key}={tag.Value}").Order(StringComparer.Ordinal),
        ])).Order(StringComparer.Ordinal)];
}
