using KernelTls.Http;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Weaving;

/// <summary>Creates streams and handlers for one woven assembly.</summary>
internal sealed class WovenLibrary
{
    /// <summary>
    /// The AppContext switch that sets <see cref="KtlsOptions.RequireCloseNotify"/> on woven streams. Unset: off, as on the
    /// SslStream that the library was written for.
    /// </summary>
    public const string CloseNotifySwitch = "KernelTls.Weaving.RequireCloseNotify";

    /// <summary>
    /// The AppContext value that names the assemblies whose woven streams set <see cref="KtlsOptions.ExpectNoPadding"/>: names
    /// separated by semicolons, or All. Only code that connects to trusted peers may be named.
    /// </summary>
    public const string NoPaddingNames = "KernelTls.Weaving.ExpectNoPadding";

    /// <summary>
    /// The AppContext value that names the assemblies whose woven streams set <see cref="KtlsOptions.AllowSocketReuse"/>: names separated
    /// by semicolons, All, or None. Unset: <see cref="SocketReusers"/>.
    /// </summary>
    public const string SocketReuseNames = "KernelTls.Weaving.AllowSocketReuse";

    /// <summary>The assemblies that are known to use a socket after TLS has ended: FTP's CCC command (RFC 4217, section 3).</summary>
    private const string SocketReusers = "FluentFTP";

    private readonly KtlsOptions _handlerOptions;

    public WovenLibrary(string name)
    {
        _handlerOptions = new KtlsOptions
        {
            RequireCloseNotify = AppContext.TryGetSwitch(CloseNotifySwitch, out bool required) && required,
            ExpectNoPadding = IsNamed(name, AppContext.GetData(NoPaddingNames) as string) ? KtlsExpectNoPadding.Always : KtlsExpectNoPadding.Automatic,
            Library = name,
        };
        Options = _handlerOptions.Copy();
        Options.AllowSocketReuse = IsNamed(name, AppContext.GetData(SocketReuseNames) as string ?? SocketReusers);
    }

    /// <summary>
    /// Gets a value that indicates whether the operator has switched this library on, or has set its switch to an invalid value.
    /// Otherwise woven code creates the same objects as the code that it replaces.
    /// </summary>
    public static bool IsActive { get; } = Toggles.AreOn;

    /// <summary>Gets the options of every stream of this library. They do not change.</summary>
    public KtlsOptions Options { get; }

    /// <summary>Makes the connections of a handler use a KtlsStream, unless this class has seen the handler before.</summary>
    public SocketsHttpHandler Weave(SocketsHttpHandler handler)
    {
        if (IsActive)
        {
            handler.ConnectCallback = new KtlsConnector(handler, _handlerOptions) { IsWoven = true }.ConnectAsync;
        }

        return handler;
    }

    /// <inheritdoc cref="Weave(SocketsHttpHandler)"/>
    /// <remarks>If the runtime implements HttpClientHandler differently, the handler stays unchanged. The monitor of stock handshakes reports that.</remarks>
    public HttpClientHandler Weave(HttpClientHandler handler)
    {
        if (IsActive && HttpInternals.TryGetHandler(handler) is { ConnectCallback: null } underlying)
        {
            underlying.ConnectCallback =
                new KtlsConnector(underlying, _handlerOptions) { IsWoven = true, PassesRequestAsSender = true }.ConnectAsync;
        }

        return handler;
    }

    private static bool IsNamed(string name, string? names) =>
        names is not null
        && names.Split(';', StringSplitOptions.TrimEntries).Any(
            n => n.Equals(name, StringComparison.OrdinalIgnoreCase) || n.Equals("All", StringComparison.OrdinalIgnoreCase));
}
