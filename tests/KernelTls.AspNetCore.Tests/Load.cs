using System.Globalization;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Defines the amount of work of tests with many requests.</summary>
internal static class Load
{
    /// <summary>Gets KERNELTLS_REQUESTS, the number of requests of each kind (1000; 100 in the lab).</summary>
    public static int Requests { get; } = int.Parse(
        Environment.GetEnvironmentVariable("KERNELTLS_REQUESTS") ?? (Cell.IsLab ? "100" : "1000"), CultureInfo.InvariantCulture);

    /// <summary>Gets the number of connections, at most twenty, because handshakes are slow in the lab.</summary>
    public static int Connections { get; } = Math.Clamp(Requests / 20, 1, 20);

    /// <summary>Gets the time limit: the limit of one request is enough for a thousand.</summary>
    public static TimeSpan Limit { get; } = Limits.Wait * Math.Max(1, Requests / 1000);

    /// <summary>
    /// Returns the number of requests for a body size: fewer for large bodies, a quarter for 64 KiB, a twentieth for
    /// more.
    /// </summary>
    public static int RequestsOf(int size) => Math.Max(Connections, size switch
    {
        0 => Requests,
        <= 65_536 => Requests / 4,
        _ => Requests / 20,
    });
}
