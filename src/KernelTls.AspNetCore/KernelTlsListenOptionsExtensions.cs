using KernelTls;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;

namespace Microsoft.AspNetCore.Hosting;

/// <summary>Adds kernel TLS to one of Kestrel's endpoints.</summary>
public static class KernelTlsListenOptionsExtensions
{
    /// <summary>Gives this https endpoint its own options, which override those of the server.</summary>
    /// <remarks>
    /// <para>
    /// Call <c>UseKernelTls</c> on the web host's builder first, because it registers the transport. The endpoint's
    /// options start as a copy of the server's, except that <see cref="KtlsOptions.Mode"/> is
    /// <see cref="KtlsMode.Preferred"/> unless the server's is <see cref="KtlsMode.Required"/>. To use kernel TLS for
    /// single endpoints, call <c>builder.WebHost.UseKernelTls(o =&gt; o.Mode = KtlsMode.Disabled)</c> and this method
    /// for each of them. To exclude one endpoint, call this method for it with <see cref="KtlsMode.Disabled"/>.
    /// </para>
    /// <para>
    /// The method can be called before or after <c>UseHttps</c>. A second call changes the options that the first has
    /// set. With <see cref="KtlsMode.Required"/> the server does not start if this endpoint cannot use kernel TLS, and
    /// a connection that cannot use it is refused. If the endpoint has no <c>UseHttps</c>, the server does not start
    /// (<see cref="InvalidOperationException"/>).
    /// </para>
    /// </remarks>
    /// <param name="listenOptions">The endpoint.</param>
    /// <param name="configure">The action that changes the options of the endpoint's connections.</param>
    /// <returns>The same endpoint, so that calls can be chained.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="listenOptions"/> is <see langword="null"/>.</exception>
    /// <exception cref="InvalidOperationException">
    /// <c>UseKernelTls</c> was not called on the web host's builder.
    /// </exception>
    /// <exception cref="KtlsNotAvailableException">
    /// Kernel TLS is required, and the package does not know this version of Kestrel.
    /// </exception>
    public static ListenOptions UseKernelTls(this ListenOptions listenOptions, Action<KtlsOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(listenOptions);
        EndpointSetup setup = listenOptions.ApplicationServices?.GetService<EndpointSetup>()
            ?? throw new InvalidOperationException(
                $"UseKernelTls was called for {listenOptions} but not on the web host's builder. Call builder.WebHost.UseKernelTls() "
                + "as well, with KtlsMode.Disabled if other endpoints must not use kernel TLS.");
        setup.Configure(listenOptions, configure);
        return listenOptions;
    }
}
