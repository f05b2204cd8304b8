using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Security.Authentication;

namespace KernelTls.Interop;

/// <summary>
/// The only file that knows private members of the runtime. They are looked up once; <see cref="IsAvailable"/> is false where
/// one is missing, and then no connection leaves the base class.
/// </summary>
/// <remarks>
/// They serve three ends: to publish what was negotiated through the members of <see cref="SslStream"/> that a subclass cannot
/// override (<see cref="SslStream.NegotiatedApplicationProtocol"/>, without which HttpClient offers no HTTP/2, and
/// <see cref="SslStream.TargetHostName"/>), to see whether a certificate context carries a trust list, and to keep
/// <see cref="Socket.Connected"/> true where the kernel's way of announcing a control record makes a socket believe it lost
/// its connection.
/// </remarks>
[UnconditionalSuppressMessage("Trimming", "IL2080", Justification = "ILLink.Descriptors.xml keeps these members; where one is missing all the same, IsAvailable says so.")]
internal static class RuntimeInternals
{
    private const BindingFlags Instance = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    private static readonly Type? s_infoType = Type.GetType("System.Net.Security.SslConnectionInfo, System.Net.Security");
    private static readonly Type? s_optionsType = Type.GetType("System.Net.Security.SslAuthenticationOptions, System.Net.Security");
    private static readonly FieldInfo? s_info = typeof(SslStream).GetField("_connectionInfo", Instance);
    private static readonly FieldInfo? s_options = typeof(SslStream).GetField("_sslAuthenticationOptions", Instance);
    private static readonly PropertyInfo? s_protocol = Info("Protocol");
    private static readonly PropertyInfo? s_suite = Info("TlsCipherSuite");
    private static readonly PropertyInfo? s_applicationProtocol = Info("ApplicationProtocol");
    private static readonly PropertyInfo? s_cipher = Info("DataCipherAlg");
    private static readonly PropertyInfo? s_cipherBits = Info("DataKeySize");
    private static readonly PropertyInfo? s_hash = Info("DataHashAlg");
    private static readonly PropertyInfo? s_hashBits = Info("DataHashKeySize");
    private static readonly PropertyInfo? s_exchange = Info("KeyExchangeAlg");
    private static readonly PropertyInfo? s_exchangeBits = Info("KeyExchKeySize");
    private static readonly MethodInfo? s_mapCipherSuite =
        s_infoType?.GetMethod("MapCipherSuite", Instance, [typeof(TlsCipherSuite)]);

    private static readonly FieldInfo? s_trust = typeof(SslStreamCertificateContext).GetField("Trust", Instance);
    private static readonly Action<Socket>? s_setToConnected = typeof(Socket)
        .GetMethod("SetToConnected", Instance, Type.EmptyTypes)?.CreateDelegate<Action<Socket>>();

    private static readonly PropertyInfo? s_targetHost = s_optionsType?.GetProperty("TargetHost", Instance);

    /// <summary>Every member needed is there, with the expected type.</summary>
    public static bool IsAvailable { get; } =
        s_info is not null && s_info.FieldType == s_infoType &&
        s_options is not null && s_options.FieldType == s_optionsType &&
        Is(s_protocol, typeof(int)) && Is(s_suite, typeof(TlsCipherSuite)) && Is(s_applicationProtocol, typeof(byte[])) &&
        Is(s_cipher, typeof(int)) && Is(s_cipherBits, typeof(int)) && Is(s_hash, typeof(int)) &&
        Is(s_hashBits, typeof(int)) && Is(s_exchange, typeof(int)) && Is(s_exchangeBits, typeof(int)) &&
        s_mapCipherSuite is not null && Is(s_targetHost, typeof(string)) &&
        s_setToConnected is not null &&
        s_trust is not null && s_trust.FieldType == typeof(SslCertificateTrust);

    /// <summary>A receive failed, and the connection lives: Socket.Connected says so again.</summary>
    public static void SetToConnected(Socket socket) => s_setToConnected!(socket);

    /// <summary>The context was made with a trust list, which decides whom to trust and may be announced to clients.</summary>
    public static bool HasTrust(SslStreamCertificateContext context) => s_trust!.GetValue(context) is not null;

    /// <summary>Publishes the connection's properties; the strengths come back as the base class derives them from the suite.</summary>
    /// <param name="stream">The stream whose base members are lit up.</param>
    /// <param name="protocol">Negotiated version.</param>
    /// <param name="suite">Negotiated suite.</param>
    /// <param name="applicationProtocol">Negotiated ALPN protocol, <see langword="null"/> for none.</param>
    /// <param name="targetHost">Client: the name as given; server: the SNI received, readable. Empty for none.</param>
    public static CipherStrengths Publish(
        SslStream stream, SslProtocols protocol, TlsCipherSuite suite, byte[]? applicationProtocol, string targetHost)
    {
        object info = s_info!.GetValue(stream)!;
        s_protocol!.SetValue(info, (int)protocol);
        s_suite!.SetValue(info, suite);
        s_applicationProtocol!.SetValue(info, applicationProtocol);
        s_mapCipherSuite!.Invoke(info, [suite]);
        s_info.SetValue(stream, info);
        s_targetHost!.SetValue(s_options!.GetValue(stream), targetHost);

        return new CipherStrengths(
            (CipherAlgorithmType)(int)s_cipher!.GetValue(info)!,
            (int)s_cipherBits!.GetValue(info)!,
            (HashAlgorithmType)(int)s_hash!.GetValue(info)!,
            (int)s_hashBits!.GetValue(info)!,
            (ExchangeAlgorithmType)(int)s_exchange!.GetValue(info)!,
            (int)s_exchangeBits!.GetValue(info)!);
    }

    private static PropertyInfo? Info(string name) => s_infoType?.GetProperty(name, Instance);

    private static bool Is(PropertyInfo? property, Type type) =>
        property is not null && property.PropertyType == type && property.CanRead && property.CanWrite;
}

/// <summary>What the obsolete strength properties of <see cref="SslStream"/> report.</summary>
internal readonly record struct CipherStrengths(
    CipherAlgorithmType Cipher,
    int CipherBits,
    HashAlgorithmType Hash,
    int HashBits,
    ExchangeAlgorithmType Exchange,
    int ExchangeBits);
