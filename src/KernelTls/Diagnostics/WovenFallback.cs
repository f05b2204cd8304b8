namespace KernelTls.Diagnostics;

/// <summary>Describes why connections of a woven library stay with SslStream.</summary>
/// <param name="Library">The name of the woven assembly.</param>
/// <param name="Stream">The type of the stream between its SslStream and the socket.</param>
internal sealed record WovenFallback(string Library, string Stream);
