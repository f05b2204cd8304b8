using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore;

/// <summary>Kernel TLS for one of Kestrel's endpoints.</summary>
public static class KernelTlsListenOptionsExtensions
{
    /// <summary>Gives this https endpoint options of its own, which win over those of the server.</summary>
    /// <remarks>
    /// <para>
    /// <c>UseKernelTls</c> on the web host's builder comes first: it puts the transport there. Its options are what the
    /// endpoint's begin with, except that <see cref="KtlsOptions.Mode"/> is <see cref="KtlsMode.Preferred"/> where the server's
    /// is not <see cref="KtlsMode.Required"/>. So kernel TLS for single endpoints is
    /// <c>builder.WebHost.UseKernelTls(o =&gt; o.Mode = KtlsMode.Disabled)</c> and this method for each of them; and all but one is
    /// this method for the one, with <see cref="KtlsMode.Disabled"/>.
    /// </para>
    /// <para>
    /// Before or after <c>UseHttps</c> is the same; a second call changes what the first has set. With
    /// <see cref="KtlsMode.Required"/> the server does not start where this endpoint cannot have kernel TLS, and a connection to
    /// it that cannot is refused. An endpoint without <c>UseHttps</c> is a mistake that keeps the server from starting
    /// (<see cref="InvalidOperationException"/>).
    /// </para>
    /// </remarks>
    /// <param name="listenOptions">The endpoint.</param>
    /// <param name="configure">Changes the options of its connections.</param>
    /// <returns>The same endpoint.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="listenOptions"/> is <see langword="null"/>.</exception>
    /// <exception cref="InvalidOperationException"><c>UseKernelTls</c> was not called on the web host's builder.</exception>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required, and this Kestrel is not known to the package.</exception>
    public static ListenOptions UseKernelTls(this ListenOptions listenOptions, Action<KtlsOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(listenOptions);
        EndpointSetup setup = listenOptions.ApplicationServices?.GetService<EndpointSetup>()
            ?? throw new InvalidOperationException(
                $"UseKernelTls was called for {listenOptions}, and not on the web host's builder: call builder.WebHost.UseKernelTls() "
                + "as well, with KtlsMode.Disabled if other endpoints are to do without.");
        setup.Choose(listenOptions, configure);
        return listenOptions;
    }
}
