namespace KernelTls.Demo.Server;

/// <summary>What this server needs to know of a request.</summary>
/// <param name="Method">As sent; case-sensitive.</param>
/// <param name="Path">Path of the target, without the query.</param>
/// <param name="KeepAlive">The client takes another response on this connection.</param>
/// <param name="HasBody">A body follows. This server reads none, so the connection ends with the response.</param>
internal sealed record RequestHead(string Method, string Path, bool KeepAlive, bool HasBody);
