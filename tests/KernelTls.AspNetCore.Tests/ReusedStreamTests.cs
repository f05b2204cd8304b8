using System.Reflection;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http.Features;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests HTTP/2 streams that Kestrel reuses although its frame writer has left them marked as scheduled
/// (dotnet/aspnetcore#53736).
/// </summary>
public class ReusedStreamTests
{
    /// <summary>The number of requests by which Kestrel has reused a stream's object.</summary>
    private const int MaxRequests = 20;

    private const int Size = 50_001;

    private const BindingFlags Private = BindingFlags.Instance | BindingFlags.NonPublic;

    public static TheoryData<TlsMode> Every { get; } = [.. Modes.Every];

    /// <summary>
    /// A response on a marked stream arrives. On the stock transport it never does. If that half fails, Kestrel is fixed: delete
    /// the workaround when the oldest version in docs/upstream.md has the fix, too.
    /// </summary>
    [Theory]
    [MemberData(nameof(Every))]
    public Task A_stream_that_is_still_marked_as_scheduled_responds(TlsMode mode) =>
        MarkAndAskAgainAsync(mode, responds: Modes.OnOpenSsl.Contains(mode), StockStreams.Leave);

    /// <summary>The servers of all other tests respond on the stock transport, too.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public Task A_stream_of_the_tests_servers_responds_in_any_mode(TlsMode mode) => MarkAndAskAgainAsync(mode, responds: true);

    [Fact]
    public async Task The_switch_turns_the_repair_off()
    {
        AppContext.SetSwitch(ReusedStreams.Switch, false);
        try
        {
            await MarkAndAskAgainAsync(TlsMode.DirectOpenSsl, responds: false);
        }
        finally
        {
            AppContext.SetSwitch(ReusedStreams.Switch, true);
        }
    }

    [Theory]
    [InlineData("9.0.0.0", null, false)]
    [InlineData("10.0.0.0", null, true)]
    [InlineData("11.0.0.0", null, true)]
    [InlineData("12.0.0.0", null, false)]
    [InlineData("11.0.0.0", false, false)]
    [InlineData("12.0.0.0", true, true)]
    public void Streams_are_repaired_where_the_fault_was_seen(string kestrel, bool? isOn, bool expected) =>
        Assert.Equal(expected, ReusedStreams.IsEnabledFor(Version.Parse(kestrel), isOn));

    private static async Task MarkAndAskAgainAsync(TlsMode mode, bool responds, Action<WebApplicationBuilder>? builder = null)
    {
        TaskCompletionSource<IFeatureCollection> begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(mode, builder: builder, application: application => application.Use((context, next) =>
        {
            begun.SetResult(context.Features);
            return next(context);
        }));
        using HttpClient client = Server.CreateClient("2.0");
        HashSet<object> marked = [];
        for (int i = 0; i < MaxRequests; i++)
        {
            begun = new TaskCompletionSource<IFeatureCollection>(TaskCreationOptions.RunContinuationsAsynchronously);
            Task<byte[]> asking = client.GetByteArrayAsync(new Uri(server.Https, $"/bytes/{Size}"));
            IFeatureCollection stream = await begun.Task.InTime("the request");
            if (!marked.Add(stream))
            {
                await AssertOutcomeAsync(asking, responds, isLogged: Modes.OnOpenSsl.Contains(mode), server.Events);
                return;
            }

            Assert.Equal(Size, (await asking.InTime("the response on a new stream")).Length);
            await QueueLateAsync(stream);
        }

        Assert.Fail("Kestrel did not reuse a stream.");
    }

    private static async Task AssertOutcomeAsync(Task<byte[]> asking, bool responds, bool isLogged, Server.Log events)
    {
        if (!responds)
        {
            await asking.StaysPending("the response on a marked stream");
            return;
        }

        Assert.Equal(Size, (await asking.InTime("the response on a marked stream")).Length);
        Assert.Equal(isLogged ? 1 : 0, events.Entries.Count(e => e.Message.Contains("marked as scheduled", StringComparison.Ordinal)));
    }

    /// <summary>
    /// Queues a stream whose response has ended, as the thread does that has begun to process a WINDOW_UPDATE before the end. Returns
    /// when the frame writer has taken the stream out of its queue.
    /// </summary>
    private static async Task QueueLateAsync(object stream)
    {
        object output = stream.GetType().BaseType!.GetField("_http2Output", Private)!.GetValue(stream)!;
        FieldInfo completed = output.GetType().GetField("_completedResponse", Private)!;
        await Limits.UntilAsync(() => (bool)completed.GetValue(output)!, "the end of the response");
        output.GetType().GetMethod("Schedule")!.Invoke(output, null);

        object writer = output.GetType().GetField("_frameWriter", Private)!.GetValue(output)!;
        object queue = writer.GetType().GetField("_channel", Private)!.GetValue(writer)!;
        object reader = queue.GetType().GetProperty("Reader")!.GetValue(queue)!;
        PropertyInfo count = reader.GetType().GetProperty("Count")!;
        await Limits.UntilAsync(() => (int)count.GetValue(reader)! == 0, "the frame writer to drop the stream");
    }
}
