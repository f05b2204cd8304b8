using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Wraps the feature through which Kestrel and the application see a connection's TLS.</summary>
internal readonly struct KestrelTlsFeature
{
    internal const string TypeName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.TlsConnectionFeature, Microsoft.AspNetCore.Server.Kestrel.Core";

    // The type argument is the middleware itself.
    private const string LoggerName =
        "Microsoft.Extensions.Logging.ILogger`1[[" + KestrelHttpsMiddleware.TypeName + "]], Microsoft.Extensions.Logging.Abstractions";

    [DynamicallyAccessedMembers(
        DynamicallyAccessedMemberTypes.PublicConstructors | DynamicallyAccessedMemberTypes.NonPublicConstructors)]
    private static readonly Type? s_type = Type.GetType(TypeName);

    private KestrelTlsFeature(object value) => Value = value;

    /// <summary>Gets the name of the type if it is missing, or an empty string.</summary>
    public static string MissingType => s_type is null ? TypeName : "";

    /// <summary>
    /// Gets a value that indicates whether the feature takes the middleware's logger and keeps its values when the connection
    /// ends. That is so in .NET 11.
    /// </summary>
    public static bool TakesLogger { get; } = s_type is not null && KestrelInternals.Exists(static () => TakeSnapshot(null!));

    /// <summary>Gets Kestrel's object.</summary>
    internal object Value { get; }

    /// <summary>Gets or sets a value that indicates whether a request may ask for the client's certificate after the handshake.</summary>
    public bool AllowsDelayedCertificate
    {
        get => GetAllowsDelayed(Value);
        set => SetAllowsDelayed(Value, value);
    }

    /// <summary>Calls each accessor once. Throws if a member is missing.</summary>
    public static void TryMembers()
    {
        using SslStream stream = new(new MemoryStream());
        KestrelTlsFeature trial = Create(stream, new DefaultConnectionContext(), logger: null);
        trial.SetHostName("");
        trial.AllowsDelayedCertificate = trial.AllowsDelayedCertificate;
    }

    /// <summary>Creates the feature of a connection.</summary>
    /// <param name="stream">The stream of the connection.</param>
    /// <param name="connection">The connection.</param>
    /// <param name="logger">The logger of Kestrel's HTTPS middleware. Not used on .NET 10.</param>
    public static KestrelTlsFeature Create(SslStream stream, ConnectionContext connection, object? logger) =>
        new(TakesLogger ? New(stream, connection, logger!) : New(stream, connection));

    /// <summary>Sets the interfaces that the feature implements.</summary>
    public void AddTo(IFeatureCollection features)
    {
        features.Set((ITlsConnectionFeature)Value);
        features.Set((ITlsHandshakeFeature)Value);
        features.Set((ITlsApplicationProtocolFeature)Value);
        features.Set((ISslStreamFeature)Value);
    }

    public void SetHostName(string name) => SetHostName(Value, name);

    /// <summary>Sets the exception of a failed handshake. Does nothing on .NET 10, whose feature has none.</summary>
    public void SetFailure(Exception failure)
    {
        if (TakesLogger)
        {
            SetException(Value, failure);
        }
    }

    /// <summary>
    /// Makes the feature store its values before the stream is disposed. Does nothing on .NET 10, whose feature cannot.
    /// </summary>
    public void Snapshot()
    {
        if (TakesLogger)
        {
            TakeSnapshot(Value);
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    [return: UnsafeAccessorType(TypeName)]
    private static extern object New(SslStream stream, ConnectionContext connection);

    // .NET 11.
    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    [return: UnsafeAccessorType(TypeName)]
    private static extern object New(SslStream stream, ConnectionContext connection, [UnsafeAccessorType(LoggerName)] object logger);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "Snapshot")]
    private static extern void TakeSnapshot([UnsafeAccessorType(TypeName)] object feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Exception")]
    private static extern void SetException([UnsafeAccessorType(TypeName)] object feature, Exception value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_HostName")]
    private static extern void SetHostName([UnsafeAccessorType(TypeName)] object feature, string value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_AllowDelayedClientCertificateNegotation")]
    private static extern bool GetAllowsDelayed([UnsafeAccessorType(TypeName)] object feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_AllowDelayedClientCertificateNegotation")]
    private static extern void SetAllowsDelayed([UnsafeAccessorType(TypeName)] object feature, bool value);
}
