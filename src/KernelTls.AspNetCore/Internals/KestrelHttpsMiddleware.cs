using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Reflection;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Wraps Kestrel's HTTPS middleware of an endpoint, and provides access to its private members.</summary>
internal readonly struct KestrelHttpsMiddleware
{
    internal const string TypeName = KestrelInternals.HttpsCategory + ", Microsoft.AspNetCore.Server.Kestrel.Core";

    [DynamicallyAccessedMembers(
        DynamicallyAccessedMemberTypes.PublicConstructors
        | DynamicallyAccessedMemberTypes.NonPublicConstructors
        | DynamicallyAccessedMemberTypes.NonPublicFields)]
    private static readonly Type? s_type = Type.GetType(TypeName);
    private static readonly FieldInfo? s_logger = s_type?.GetField("_logger", BindingFlags.Instance | BindingFlags.NonPublic);

    private readonly object _middleware;

    private KestrelHttpsMiddleware(object middleware) => _middleware = middleware;

    /// <summary>Gets the name of the type or field if it is missing, or an empty string.</summary>
    public static string MissingType =>
        s_type is null ? TypeName
        : KestrelTlsFeature.TakesLogger && s_logger is null ? TypeName + "._logger"
        : "";

    /// <summary>Gets the options, or null if they are chosen for each connection.</summary>
    public HttpsConnectionAdapterOptions? Options => OptionsField(_middleware);

    /// <summary>Gets the certificate context, or null if there is a selector.</summary>
    public SslStreamCertificateContext? CertificateContext => CertificateContextField(_middleware);

    public HttpProtocols Protocols => ProtocolsField(_middleware);

    public TimeSpan HandshakeTimeout => HandshakeTimeoutField(_middleware);

    /// <summary>Gets the callback that chooses the options for each connection, or null if there are <see cref="Options"/>.</summary>
    public Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? Callback => CallbackField(_middleware);

    public object? CallbackState => CallbackStateField(_middleware);

    /// <summary>Returns Kestrel's HTTPS middleware if that is what <paramref name="next"/> calls; otherwise null.</summary>
    public static KestrelHttpsMiddleware? Of(ConnectionDelegate next) =>
        next.Target is { } target && target.GetType() == s_type ? new KestrelHttpsMiddleware(target) : null;

    /// <summary>Calls each accessor once. Throws if a member is missing.</summary>
    public static void TryMembers()
    {
        KestrelHttpsMiddleware trial = new(RuntimeHelpers.GetUninitializedObject(s_type!));
        _ = trial.Options;
        _ = trial.CertificateContext;
        _ = trial.Protocols;
        _ = trial.HandshakeTimeout;
        _ = trial.Callback;
        _ = trial.CallbackState;
        _ = CreateCallbackContext(null!, null!, default, null, default);
    }

    /// <summary>Creates the context that the middleware passes to its callback.</summary>
    public TlsHandshakeCallbackContext CreateCallbackContext(
        ConnectionContext connection, SslStream stream, SslClientHelloInfo hello, CancellationToken cancellationToken) =>
        CreateCallbackContext(connection, stream, hello, CallbackState, cancellationToken);

    /// <summary>Creates the feature of a connection, which uses the middleware's logger.</summary>
    public KestrelTlsFeature CreateTlsFeature(SslStream stream, ConnectionContext connection) =>
        KestrelTlsFeature.Create(stream, connection, s_logger?.GetValue(_middleware));

    private static TlsHandshakeCallbackContext CreateCallbackContext(
        ConnectionContext connection, SslStream stream, SslClientHelloInfo hello, object? state, CancellationToken cancellationToken)
    {
        TlsHandshakeCallbackContext context = new();
        SetConnection(context, connection);
        SetStream(context, stream);
        SetHello(context, hello);
        SetState(context, state);
        SetToken(context, cancellationToken);
        return context;
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_options")]
    private static extern ref HttpsConnectionAdapterOptions? OptionsField([UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_serverCertificateContext")]
    private static extern ref SslStreamCertificateContext? CertificateContextField([UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_httpProtocols")]
    private static extern ref HttpProtocols ProtocolsField([UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_handshakeTimeout")]
    private static extern ref TimeSpan HandshakeTimeoutField([UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_tlsCallbackOptions")]
    private static extern ref Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? CallbackField(
        [UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_tlsCallbackOptionsState")]
    private static extern ref object? CallbackStateField([UnsafeAccessorType(TypeName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Connection")]
    private static extern void SetConnection(TlsHandshakeCallbackContext context, ConnectionContext value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_SslStream")]
    private static extern void SetStream(TlsHandshakeCallbackContext context, SslStream value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_ClientHelloInfo")]
    private static extern void SetHello(TlsHandshakeCallbackContext context, SslClientHelloInfo value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_State")]
    private static extern void SetState(TlsHandshakeCallbackContext context, object? value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_CancellationToken")]
    private static extern void SetToken(TlsHandshakeCallbackContext context, CancellationToken value);
}
