using System.Net.Security;

namespace KernelTls.Fuzz;

/// <summary>Has something of each kind that the weaver replaces. <see cref="WeaverTarget"/> reads it and never runs it.</summary>
/// <param name="inner">The inner stream.</param>
internal sealed class WeaverSample(Stream inner) : SslStream(inner)
{
    /// <summary>Creates streams and clients in branches of a switch.</summary>
    public static IDisposable Create(Stream inner, int kind) => kind switch
    {
        0 => new WeaverSample(inner),
        1 => new SslStream(inner, false, static (_, _, _, _) => true),
        2 => new HttpClient(new SocketsHttpHandler()),
        3 => new HttpClient(new HttpClientHandler()),
        _ => new HttpClient(),
    };

    /// <summary>Calls members that are replaced, directly and by a delegate.</summary>
    public static Func<SslServerAuthenticationOptions, CancellationToken, Task> Authenticate(SslStream stream)
    {
        _ = stream.AuthenticateAsClientAsync(new SslClientAuthenticationOptions());
        return stream.AuthenticateAsServerAsync;
    }
}
