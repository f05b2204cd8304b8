using KernelTls.AspNetCore.Internals;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Repairs the HTTP/2 streams of a connection that Kestrel reuses in a state in which nothing would be sent.</summary>
/// <remarks>
/// <para>
/// Kestrel marks a stream while it waits in the queue of the frame writer. If a WINDOW_UPDATE (RFC 9113, section 6.9)
/// arrives at the moment in which the last frame is written, the stream is queued once more. The frame writer then drops
/// it, because its response is complete, and leaves the mark. The object later serves another stream, which is never
/// queued, because it is marked: its response is never sent (dotnet/aspnetcore#53736).
/// </para>
/// <para>
/// This happens on any transport. The less time passes between a write and the client's WINDOW_UPDATE, the more often.
/// A request has queued nothing before the application runs, so a mark at that time is the stale one. If the stream is
/// still in the queue nevertheless, it is queued twice, which is harmless: the frame writer finds nothing to send.
/// </para>
/// <para>
/// The repair applies to the versions of Kestrel in which the fault was seen. docs/upstream.md says when to delete it.
/// </para>
/// </remarks>
internal sealed class ReusedStreams(string connectionId, ILogger logger)
{
    /// <summary>
    /// The AppContext switch of the repair. False turns it off. True turns it on, also for a version of Kestrel in which the fault was
    /// not seen.
    /// </summary>
    public const string Switch = "KernelTls.AspNetCore.RepairHttp2Streams";

    private const int FirstSeen = 10;
    private const int LastSeen = 11;

    /// <summary>Gets a value that indicates whether this Kestrel's streams are repaired.</summary>
    public static bool IsEnabled =>
        KestrelHttp2Stream.IsKnown
        && IsEnabledFor(typeof(KestrelServer).Assembly.GetName().Version!, AppContext.TryGetSwitch(Switch, out bool isOn) ? isOn : null);

    /// <summary>Returns whether the streams of a version of Kestrel are repaired, given the value of <see cref="Switch"/>.</summary>
    internal static bool IsEnabledFor(Version kestrel, bool? isOn) => isOn ?? kestrel.Major is >= FirstSeen and <= LastSeen;

    /// <summary>Repairs the stream of a request that has just begun, if its connection has this feature.</summary>
    public static void Repair(IFeatureCollection request)
    {
        if (KestrelHttp2Stream.Of(request) is { IsScheduled: true } stream && request.Get<ReusedStreams>() is { } streams)
        {
            streams.Repair(stream);
        }
    }

    private void Repair(KestrelHttp2Stream stream)
    {
        stream.ClearScheduled();
        logger.StreamRepaired(connectionId);
    }
}
