using System.ComponentModel;

namespace KernelTls.Weaving;

/// <summary>
/// Replaces <see cref="HttpClientHandler"/> as a base class in code that KernelTls.Weave has rewritten. Not for use by hand.
/// </summary>
/// <typeparam name="TAssembly">A class of the woven assembly, which names it in events.</typeparam>
[EditorBrowsable(EditorBrowsableState.Never)]
public class WovenHttpClientHandler<TAssembly> : HttpClientHandler
    where TAssembly : class
{
    /// <inheritdoc cref="HttpClientHandler()"/>
    public WovenHttpClientHandler() => WovenConstructors<TAssembly>.Library.Weave(this);
}
