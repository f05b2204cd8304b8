using System.Runtime.CompilerServices;

namespace KernelTls.Interop;

/// <summary>
/// Knows the one private member of System.Net.Http that is used: the handler that an <see cref="HttpClientHandler"/> is made of. Without
/// this member, HttpClientHandler is not woven.
/// </summary>
internal static class HttpInternals
{
    private static bool s_isMissing;

    /// <summary>Returns the handler that <paramref name="handler"/> delegates to, or null if this runtime does not expose it.</summary>
    public static SocketsHttpHandler? TryGetHandler(HttpClientHandler handler)
    {
        if (s_isMissing)
        {
            return null;
        }

        try
        {
            return UnderlyingHandler(handler);
        }
        catch (MissingFieldException)
        {
            s_isMissing = true;
            return null;
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_underlyingHandler")]
    private static extern ref SocketsHttpHandler UnderlyingHandler(HttpClientHandler handler);
}
