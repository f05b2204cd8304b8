using System.Globalization;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>How much the tests of many requests do.</summary>
internal static class Load
{
    /// <summary>KERNELTLS_REQUESTS: so many of each kind (1000; in the lab 100).</summary>
    public static int Requests { get; } = int.Parse(
        Environment.GetEnvironmentVariable("KERNELTLS_REQUESTS") ?? (Cell.IsLab ? "100" : "1000"), CultureInfo.InvariantCulture);

    /// <summary>At once, on twenty connections at most: in the lab handshakes are slow.</summary>
    public static int Connections { get; } = Math.Clamp(Requests / 20, 1, 20);

    /// <summary>What is enough for one request is enough for a thousand.</summary>
    public static TimeSpan Limit { get; } = Limits.Wait * Math.Max(1, Requests / 1000);

    /// <summary>Of large bodies fewer: a quarter of 64 KiB, a twentieth of more.</summary>
    public static int RequestsOf(int size) => Math.Max(Connections, size switch
    {
        0 => Requests,
        <= 65_536 => Requests / 4,
        _ => Requests / 20,
    });
}
