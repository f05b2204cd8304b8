using System.Net;
using System.Net.Security;
using System.Reflection;
using System.Security.Authentication.ExtendedProtection;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>Reads the public members of a stream, through a reference to SslStream and through one to KtlsStream.</summary>
internal static class CallerMembers
{
    /// <summary>The methods that change nothing at any time.</summary>
    private static readonly Dictionary<string, Func<SslStream, object?>> s_calls = new()
    {
        ["ToString"] = s => $"{s}".Replace(nameof(KtlsStream), nameof(SslStream), StringComparison.Ordinal).Split('.')[^1],
        ["Flush"] = s => Done(s.Flush),
        ["FlushAsync"] = s => Wait(s.FlushAsync()),
        ["Seek"] = s => s.Seek(0, SeekOrigin.Begin),
        ["SetLength"] = s => Done(() => s.SetLength(1)),
#pragma warning disable SYSLIB0010 // Obsolete, and still public.
        ["GetLifetimeService"] = s => s.GetLifetimeService(),
        ["InitializeLifetimeService"] = s => s.InitializeLifetimeService(),
#pragma warning restore SYSLIB0010
    };

    /// <summary>The methods that change nothing if there is no connection.</summary>
    private static readonly Dictionary<string, Func<SslStream, object?>> s_idleCalls = new()
    {
        ["Read"] = s => s.Read(new byte[1], 0, 1),
        ["ReadAsync"] = s => Wait(s.ReadAsync(new byte[1]).AsTask()),
        ["ReadByte"] = s => s.ReadByte(),
        ["ReadAtLeast"] = s => s.ReadAtLeast(new byte[1], 1),
        ["ReadAtLeastAsync"] = s => Wait(s.ReadAtLeastAsync(new byte[1], 1).AsTask()),
        ["ReadExactly"] = s => Done(() => s.ReadExactly(new byte[1])),
        ["ReadExactlyAsync"] = s => Wait(s.ReadExactlyAsync(new byte[1]).AsTask()),
        ["BeginRead"] = s => Done(() => s.EndRead(s.BeginRead(new byte[1], 0, 1, null, null))),
        ["CopyTo"] = s => Done(() => s.CopyTo(Stream.Null)),
        ["CopyToAsync"] = s => Wait(s.CopyToAsync(Stream.Null)),
        ["Write"] = s => Done(() => s.Write(new byte[1])),
        ["WriteAsync"] = s => Wait(s.WriteAsync(new byte[1]).AsTask()),
        ["WriteByte"] = s => Done(() => s.WriteByte(1)),
        ["BeginWrite"] = s => Done(() => s.EndWrite(s.BeginWrite(new byte[1], 0, 1, null, null))),
        ["ShutdownAsync"] = s => Wait(s.ShutdownAsync()),
        ["NegotiateClientCertificateAsync"] = s => Wait(s.NegotiateClientCertificateAsync()),
    };

    /// <summary>The methods that are not called: the tests call them as what they are about, or they say nothing.</summary>
    private static readonly string[] s_notCalled =
    [
        "AuthenticateAsClient", "AuthenticateAsClientAsync", "AuthenticateAsServer", "AuthenticateAsServerAsync",
        "BeginAuthenticateAsClient", "BeginAuthenticateAsServer", "EndAuthenticateAsClient", "EndAuthenticateAsServer",
        "EndRead", "EndWrite", "Close", "Dispose", "DisposeAsync", "Equals", "GetHashCode", "GetType",
    ];

    private static readonly string[] s_properties =
    [
        "CanRead", "CanSeek", "CanTimeout", "CanWrite", "CheckCertRevocationStatus", "CipherAlgorithm", "CipherStrength",
        "HashAlgorithm", "HashStrength", "IsAuthenticated", "IsEncrypted", "IsMutuallyAuthenticated", "IsServer", "IsSigned",
        "KeyExchangeAlgorithm", "KeyExchangeStrength", "LeaveInnerStreamOpen", "Length", "LocalCertificate",
        "NegotiatedApplicationProtocol", "NegotiatedCipherSuite", "Position", "ReadTimeout", "RemoteCertificate", "SslProtocol",
        "TargetHostName", "TransportContext", "WriteTimeout",
    ];

    private static PropertyInfo[] Properties { get; } = typeof(SslStream).GetProperties();

    /// <summary>Gets the properties that a KtlsStream hides instead of overriding them.</summary>
    private static PropertyInfo[] Hidden { get; } =
    [
        .. typeof(KtlsStream).GetProperties(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
            .Where(p => p.GetMethod!.GetBaseDefinition().DeclaringType == typeof(KtlsStream) && s_properties.Contains(p.Name)),
    ];

    /// <summary>Gets the members of this runtime's SslStream that are not among those known here, and the reverse.</summary>
    public static IEnumerable<string> Unknown()
    {
        string[] properties = [.. Properties.Select(p => p.Name)];
        string[] methods = [.. typeof(SslStream).GetMethods(BindingFlags.Public | BindingFlags.Instance).Where(m => !m.IsSpecialName).Select(m => m.Name).Distinct()];
        string[] known = [.. s_calls.Keys, .. s_idleCalls.Keys, .. s_notCalled];
        return [.. properties.Except(s_properties), .. s_properties.Except(properties), .. methods.Except(known), .. known.Except(methods)];
    }

    /// <summary>Gets the methods of SslStream that neither can be overridden nor are hidden by those of KtlsStream.</summary>
    public static IEnumerable<string> OutOfReach() =>
        from method in typeof(SslStream).GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
        where !method.IsVirtual || method.IsFinal
        let own = typeof(KtlsStream).GetMethod(method.Name, [.. method.GetParameters().Select(p => p.ParameterType)])
        where own!.DeclaringType != typeof(KtlsStream)
        select method.Name;

    /// <summary>Gets the constructors of SslStream that KtlsStream lacks.</summary>
    public static IEnumerable<string> MissingConstructors() =>
        from constructor in typeof(SslStream).GetConstructors()
        where typeof(KtlsStream).GetConstructor([.. constructor.GetParameters().Select(p => p.ParameterType)]) is null
        select $"{constructor}";

    /// <summary>Adds every member of the stream at a point of its life.</summary>
    /// <param name="surface">The surface to add to.</param>
    /// <param name="point">The point.</param>
    /// <param name="stream">The stream.</param>
    /// <param name="isIdle">Whether there is no connection, so that reads, writes and so on change nothing.</param>
    public static void Read(Surface surface, string point, SslStream stream, bool isIdle = false)
    {
        foreach (PropertyInfo property in Properties)
        {
            Ask(surface, $"{point}: {property.Name}", property, stream);
        }

        foreach (PropertyInfo property in Hidden)
        {
            PropertyInfo own = stream is KtlsStream ? property : typeof(SslStream).GetProperty(property.Name)!;
            Ask(surface, $"{point}: KtlsStream.{property.Name}", own, stream);
        }

        foreach ((string name, Func<SslStream, object?> call) in isIdle ? s_calls.Concat(s_idleCalls) : s_calls)
        {
            surface.Ask($"{point}: {name}()", () => call(stream));
        }
    }

    /// <summary>Adds a property. A context is added as its bindings.</summary>
    private static void Ask(Surface surface, string member, PropertyInfo property, SslStream stream)
    {
        if (property.PropertyType != typeof(TransportContext))
        {
            surface.Ask(member, () => property.GetValue(stream));
            return;
        }

        foreach (ChannelBindingKind kind in Enum.GetValues<ChannelBindingKind>())
        {
            surface.Ask($"{member}.{kind}", () => ((TransportContext)property.GetValue(stream)!).GetChannelBinding(kind));
        }
    }

    private static string Done(Action work)
    {
        work();
        return "done";
    }

    private static string Wait(Task task)
    {
        task.InTime("a call without a connection").GetAwaiter().GetResult();
        return "done";
    }
}
