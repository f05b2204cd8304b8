using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Interop;

/// <summary>
/// The only file that knows private members of the runtime. They are looked up once; <see cref="IsAvailable"/> is false where
/// one is missing, and then no connection leaves the base class.
/// </summary>
/// <remarks>
/// They serve six ends: to publish what was negotiated through the members of <see cref="SslStream"/> that a subclass cannot
/// override (<see cref="SslStream.NegotiatedApplicationProtocol"/>, without which HttpClient offers no HTTP/2, and
/// <see cref="SslStream.TargetHostName"/>); to read what options hold and do not show (keys, trust lists, OCSP responses,
/// OpenSSL's names of cipher suites); to offer and accept the cipher suites that the base class would; to judge a peer by the base class's own judgement; to keep
/// <see cref="Socket.Connected"/> true where the kernel's way of announcing a control record makes a socket believe it lost its
/// connection; and to cancel a receive that reports errors as values.
/// </remarks>
[UnconditionalSuppressMessage("Trimming", "IL2080", Justification = "ILLink.Descriptors.xml keeps these members; where one is missing all the same, IsAvailable says so.")]
[UnconditionalSuppressMessage("Trimming", "IL2077", Justification = "As above.")]
internal static class RuntimeInternals
{
    private const BindingFlags Instance = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
    private const BindingFlags Static = BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic;

    // What was negotiated.
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

    private static readonly PropertyInfo? s_targetHost = s_optionsType?.GetProperty("TargetHost", Instance);

    // What options hold.
    private static readonly FieldInfo? s_key = typeof(SslStreamCertificateContext).GetField("KeyHandle", Instance);
    private static readonly FieldInfo? s_trust = typeof(SslStreamCertificateContext).GetField("Trust", Instance);
    private static readonly FieldInfo? s_trustStore = typeof(SslCertificateTrust).GetField("_store", Instance);
    private static readonly FieldInfo? s_trustList = typeof(SslCertificateTrust).GetField("_trustList", Instance);
    private static readonly FieldInfo? s_sendTrust = typeof(SslCertificateTrust).GetField("_sendTrustInHandshake", Instance);
    private static readonly CreateContext? s_createContext = typeof(SslStreamCertificateContext)
        .GetMethod("Create", Static, CreateParameters)?.CreateDelegate<CreateContext>();

    private static readonly Func<SslStreamCertificateContext, byte[]?>? s_ocspResponse = typeof(SslStreamCertificateContext)
        .GetMethod("GetOcspResponseNoWaiting", Instance, Type.EmptyTypes)?.CreateDelegate<Func<SslStreamCertificateContext, byte[]?>>();

    private static readonly PropertyInfo? s_policy = typeof(CipherSuitesPolicy).GetProperty("Pal", Instance);
    private static readonly Type? s_policyType = Type.GetType("System.Net.Security.CipherSuitesPolicyPal, System.Net.Security");
    private static readonly FieldInfo? s_tls12Suites = s_policyType?.GetField("_cipherSuites", Instance);
    private static readonly FieldInfo? s_tls13Suites = s_policyType?.GetField("_tls13CipherSuites", Instance);

    // How .NET makes an SSL_CTX, before options change it.
    private static readonly FieldInfo? s_sslMethod =
        Type.GetType("Interop+Ssl+SslMethods, System.Net.Security")?.GetField("SSLv23_method", Static);

    private static readonly Func<nint, SafeHandle>? s_createSslContext = Type.GetType("Interop+Ssl, System.Net.Security")
        ?.GetMethod("SslCtxCreate", Static, [typeof(nint)])?.CreateDelegate<Func<nint, SafeHandle>>();

    private static readonly JudgePeer? s_judge = Type.GetType("System.Net.Security.CertificateValidation, System.Net.Security")
        ?.GetMethod("BuildChainAndVerifyProperties", Static, JudgeParameters)?.CreateDelegate<JudgePeer>();

    private static readonly Action<Socket>? s_setToConnected = typeof(Socket)
        .GetMethod("SetToConnected", Instance, Type.EmptyTypes)?.CreateDelegate<Action<Socket>>();

    private static readonly Func<Socket, SocketAsyncEventArgs, CancellationToken, bool>? s_receive = typeof(Socket)
        .GetMethod("ReceiveAsync", Instance, [typeof(SocketAsyncEventArgs), typeof(CancellationToken)])
        ?.CreateDelegate<Func<Socket, SocketAsyncEventArgs, CancellationToken, bool>>();

    private static Type[] CreateParameters =>
        [typeof(X509Certificate2), typeof(X509Certificate2Collection), typeof(bool), typeof(SslCertificateTrust), typeof(bool)];

    private static Type[] JudgeParameters =>
        [typeof(X509Chain), typeof(X509Certificate2), typeof(bool), typeof(bool), typeof(string)];

    private delegate SslPolicyErrors JudgePeer(
        X509Chain chain, X509Certificate2 certificate, bool checkName, bool isServer, string? host);

    private delegate SslStreamCertificateContext CreateContext(
        X509Certificate2 target,
        X509Certificate2Collection? additional,
        bool offline,
        SslCertificateTrust? trust,
        bool noOcspFetch);

    /// <summary>Every member needed is there, with the expected type.</summary>
    public static bool IsAvailable { get; } =
        s_info is not null && s_info.FieldType == s_infoType &&
        s_options is not null && s_options.FieldType == s_optionsType &&
        Is(s_protocol, typeof(int)) && Is(s_suite, typeof(TlsCipherSuite)) && Is(s_applicationProtocol, typeof(byte[])) &&
        Is(s_cipher, typeof(int)) && Is(s_cipherBits, typeof(int)) && Is(s_hash, typeof(int)) &&
        Is(s_hashBits, typeof(int)) && Is(s_exchange, typeof(int)) && Is(s_exchangeBits, typeof(int)) &&
        s_mapCipherSuite is not null && Is(s_targetHost, typeof(string)) &&
        Is(s_key, typeof(SafeEvpPKeyHandle)) && Is(s_trust, typeof(SslCertificateTrust)) &&
        Is(s_trustStore, typeof(X509Store)) && Is(s_trustList, typeof(X509Certificate2Collection)) && Is(s_sendTrust, typeof(bool)) &&
        s_createContext is not null && s_ocspResponse is not null &&
        s_policy is not null && s_policy.PropertyType == s_policyType && Is(s_tls12Suites, typeof(byte[])) && Is(s_tls13Suites, typeof(byte[])) &&
        Is(s_sslMethod, typeof(nint)) && s_createSslContext is not null &&
        s_judge is not null && s_setToConnected is not null && s_receive is not null;

    /// <summary>Builds the chain and compares the name, as the base class has it done: a name in OpenSSL's way.</summary>
    /// <exception cref="ArgumentException">The host is no name that IDNA knows.</exception>
    public static SslPolicyErrors Judge(X509Chain chain, X509Certificate2 certificate, bool checkName, string host) =>
        s_judge!(chain, certificate, checkName, isServer: false, host);

    /// <summary>A receive failed, and the connection lives: Socket.Connected says so again.</summary>
    public static void SetToConnected(Socket socket) => s_setToConnected!(socket);

    /// <summary>
    /// Socket.ReceiveAsync of event arguments, with a token: it ends as <see cref="SocketError.OperationAborted"/>, without
    /// an exception.
    /// </summary>
    public static bool ReceiveAsync(Socket socket, SocketAsyncEventArgs arguments, CancellationToken cancellationToken) =>
        s_receive!(socket, arguments, cancellationToken);

    /// <summary>The private key as OpenSSL holds it; the context's own reference, not to be disposed.</summary>
    public static SafeEvpPKeyHandle KeyOf(SslStreamCertificateContext context) => (SafeEvpPKeyHandle)s_key!.GetValue(context)!;

    /// <summary>A context as SslStream makes it from a bare certificate: its chain is built, and no OCSP response is fetched unless asked for.</summary>
    public static SslStreamCertificateContext CreateCertificateContext(X509Certificate2 certificate, bool fetchOcsp) =>
        s_createContext!(certificate, null, offline: false, null, !fetchOcsp);

    /// <summary>The OCSP response to staple, where the context has one ready.</summary>
    public static byte[]? OcspResponseOf(SslStreamCertificateContext context) => s_ocspResponse!(context);

    /// <summary>Whom the context trusts; <see langword="null"/> where it was made without a trust list.</summary>
    public static CertificateTrust? TrustOf(SslStreamCertificateContext context)
    {
        if (s_trust!.GetValue(context) is not { } trust)
        {
            return null;
        }

        return new CertificateTrust(
            (X509Store?)s_trustStore!.GetValue(trust),
            (X509Certificate2Collection?)s_trustList!.GetValue(trust),
            (bool)s_sendTrust!.GetValue(trust)!);
    }

    /// <summary>A policy's suites as this OpenSSL names them, those it does not know left out: TLS 1.2 and below, and TLS 1.3.</summary>
    public static (string Tls12, string Tls13) NamesOf(CipherSuitesPolicy policy)
    {
        object names = s_policy!.GetValue(policy)!;
        return (Text(s_tls12Suites!), Text(s_tls13Suites!));

        string Text(FieldInfo field) => NativeText.Decode((byte[])field.GetValue(names)!);
    }

    /// <summary>
    /// Creates an SSL_CTX as SslStream does for options that leave everything open; the caller disposes it. It is invalid where
    /// OpenSSL could not make one.
    /// </summary>
    public static SafeHandle CreateSslContext() => s_createSslContext!((nint)s_sslMethod!.GetValue(null)!);

    /// <summary>
    /// Makes <see cref="SslStream.TargetHostName"/> answer: a client's name as given, a server's SNI as received, readable;
    /// empty for none.
    /// </summary>
    public static void PublishTargetHost(SslStream stream, string targetHost) =>
        s_targetHost!.SetValue(s_options!.GetValue(stream), targetHost);

    /// <summary>
    /// Makes <see cref="SslStream.NegotiatedApplicationProtocol"/> answer, for which the base class wants to know the version as
    /// well; and in the midst of a handshake its <see cref="SslStream.SslProtocol"/>, <see cref="SslStream.NegotiatedCipherSuite"/>
    /// and the strengths that it derives from the suite.
    /// </summary>
    /// <param name="stream">The stream whose base members are lit up.</param>
    /// <param name="protocol">Negotiated version.</param>
    /// <param name="suite">Negotiated suite.</param>
    /// <param name="applicationProtocol">Negotiated ALPN protocol, <see langword="null"/> for none.</param>
    /// <param name="inHandshake">A callback is about to look; afterwards the session answers.</param>
    public static void Publish(
        SslStream stream, SslProtocols protocol, TlsCipherSuite suite, byte[]? applicationProtocol, bool inHandshake)
    {
        object info = s_info!.GetValue(stream)!;
        if (inHandshake)
        {
            s_mapCipherSuite!.Invoke(info, [suite]);
        }

        s_protocol!.SetValue(info, (int)protocol);
        s_suite!.SetValue(info, suite);
        s_applicationProtocol!.SetValue(info, applicationProtocol);
        s_info.SetValue(stream, info);
    }

    /// <summary>The strengths that the base class derives from a suite.</summary>
    public static CipherStrengths StrengthsOf(TlsCipherSuite suite)
    {
        object info = RuntimeHelpers.GetUninitializedObject(s_infoType!);
        s_mapCipherSuite!.Invoke(info, [suite]);
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

    private static bool Is(FieldInfo? field, Type type) => field is not null && field.FieldType == type;
}
/// <summary>What the obsolete strength properties of <see cref="SslStream"/> report.</summary>
internal readonly record struct CipherStrengths(
    CipherAlgorithmType Cipher,
    int CipherBits,
    HashAlgorithmType Hash,
    int HashBits,
    ExchangeAlgorithmType Exchange,
    int ExchangeBits);

/// <summary>What an <see cref="SslCertificateTrust"/> says: the roots to trust, and whether clients are told their names.</summary>
internal sealed record CertificateTrust(X509Store? Store, X509Certificate2Collection? List, bool Announced)
{
    /// <summary>The roots of the store and of the list.</summary>
    public X509Certificate2Collection Roots
    {
        get
        {
            X509Certificate2Collection roots = [];
            if (Store is not null)
            {
                roots.AddRange(Store.Certificates);
            }

            if (List is not null)
            {
                roots.AddRange(List);
            }

            return roots;
        }
    }
}
