using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http.Features;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Wraps an HTTP/2 stream of Kestrel, which is the feature collection of its request.</summary>
internal readonly struct KestrelHttp2Stream
{
    private const string ProtocolName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string OutputInterfaceName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.IHttpOutputProducer, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string StreamName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http2.Http2Stream, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string OutputName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http2.Http2OutputProducer, Microsoft.AspNetCore.Server.Kestrel.Core";

    private static readonly Type? s_type = Type.GetType(StreamName);
    private static readonly Type? s_outputType = Type.GetType(OutputName);

    private readonly object _output;

    private KestrelHttp2Stream(object output) => _output = output;

    /// <summary>Gets a value that indicates whether Kestrel has the members. If it does not, its streams are left as they are.</summary>
    public static bool IsKnown { get; } =
        s_type is not null
        && s_outputType is not null
        && KestrelInternals.Exists(static () => GetOutput(null!))
        && KestrelInternals.Exists(static () => _ = GetIsScheduled(null!))
        && KestrelInternals.Exists(static () => _ = GetLock(null!));

    /// <summary>Returns the stream of a request, or null if the request is not one of HTTP/2.</summary>
    public static KestrelHttp2Stream? Of(IFeatureCollection request) =>
        IsKnown && s_type!.IsInstanceOfType(request) && GetOutput(request) is { } output && s_outputType!.IsInstanceOfType(output)
            ? new KestrelHttp2Stream(output)
            : null;

    /// <summary>Gets a value that indicates whether the stream waits in the queue of the connection's frame writer.</summary>
    public bool IsScheduled => GetIsScheduled(_output);

    /// <summary>Clears <see cref="IsScheduled"/>, so that the next write queues the stream.</summary>
    public void ClearScheduled()
    {
        lock (GetLock(_output))
        {
            GetIsScheduled(_output) = false;
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_Output")]
    [return: UnsafeAccessorType(OutputInterfaceName)]
    private static extern object? GetOutput([UnsafeAccessorType(ProtocolName)] object stream);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_isScheduled")]
    private static extern ref bool GetIsScheduled([UnsafeAccessorType(OutputName)] object output);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_dataWriterLock")]
    private static extern ref Lock GetLock([UnsafeAccessorType(OutputName)] object output);
}
