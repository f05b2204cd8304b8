using System.ComponentModel;

namespace KernelTls.Weaving;

/// <summary>
/// For code that KernelTls.Weave has rewritten: the base class of what derived from <see cref="HttpClientHandler"/>. Not for use by
/// hand.
/// </summary>
/// <typeparam name="TAssembly">A class of the woven assembly, which names it in events.</typeparam>
[EditorBrowsable(EditorBrowsableState.Never)]
public class WovenHttpClientHandler<TAssembly> : HttpClientHandler
    where TAssembly : class
{
    /// <inheritdoc cref="HttpClientHandler()"/>
    public WovenHttpClientHandler() => WovenConstructors<TAssembly>.Library.Weave(this);
}
