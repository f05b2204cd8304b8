using System.Globalization;
using System.Text.RegularExpressions;

namespace KernelTls.Tests;

/// <summary>Provides hosts for which no client has a session yet. The certificate of kind "wildcard" names all of them.</summary>
internal static partial class SurfaceHosts
{
    private static int s_count;

    /// <summary>Returns a new host. All have the same length.</summary>
    public static string New() => string.Create(CultureInfo.InvariantCulture, $"surface{Interlocked.Increment(ref s_count):000000}.wild.test");

    /// <summary>Returns text with the same name for any of the hosts.</summary>
    public static string Unify(string text) => Host().Replace(text, "surface");

    [GeneratedRegex(@"\bsurface\d{6}(?=\.wild\.test)")]
    private static partial Regex Host();
}
