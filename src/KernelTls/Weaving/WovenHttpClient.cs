using System.ComponentModel;

namespace KernelTls.Weaving;

/// <summary>
/// Replaces <see cref="HttpClient"/> as a base class in code that KernelTls.Weave has rewritten. Not for use by hand.
/// </summary>
/// <typeparam name="TAssembly">A class of the woven assembly, which names it in events.</typeparam>
[EditorBrowsable(EditorBrowsableState.Never)]
public class WovenHttpClient<TAssembly> : HttpClient
    where TAssembly : class
{
    /// <inheritdoc cref="HttpClient()"/>
    public WovenHttpClient()
        : base(WovenConstructors<TAssembly>.NewHttpClientHandler())
    {
    }

    /// <inheritdoc cref="HttpClient(HttpMessageHandler)"/>
    public WovenHttpClient(HttpMessageHandler handler)
        : base(handler)
    {
    }

    /// <inheritdoc cref="HttpClient(HttpMessageHandler, bool)"/>
    public WovenHttpClient(HttpMessageHandler handler, bool disposeHandler)
        : base(handler, disposeHandler)
    {
    }
}
