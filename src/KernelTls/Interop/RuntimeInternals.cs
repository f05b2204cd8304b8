using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Interop;

/// <summary>
/// Provides access to the private members of the runtime on which connections depend. ARCHITECTURE.md lists the other types that know
/// private members.
/// </summary>
/// <remarks>
/// <para>
/// The members are looked up once. If one is missing, <see cref="IsAvailable"/> is false, and every connection uses the
/// base class. <see cref="RuntimeCanary"/> tests whether they behave as expected.
/// </para>
/// <para>
/// They are looked up by constants, so the trimmer keeps them. <see cref="UnsafeAccessorAttribute"/> would not do: an accessor of
/// another assembly's member is compiled at run time, and only a call tells whether the member exists.
/// </para>
/// <para>
/// They serve seven purposes. They publish the negotiated properties through the members of <see cref="SslStream"/> that
/// a subclass cannot override (<see cref="SslStream.NegotiatedApplicationProtocol"/>, without which HttpClient offers
/// no HTTP/2, and <see cref="SslStream.TargetHostName"/>). They read what options contain but do not expose (keys,
/// trust lists, OCSP responses, OpenSSL's names of cipher suites). They provide the cipher suites and signature algorithms
/// that the base class would offer and accept. They validate a peer by the base class's own function, and with the OCSP
/// response that it stapled. They keep
/// <see cref="Socket.Connected"/> true when the kernel's error for a control record makes a socket assume that it lost
/// its connection. They cancel a receive that reports errors as values. They close a socket without resetting a
/// connection that another descriptor keeps open. And they make the base class behave as after a handshake of its own
/// (RuntimeInternals.State.cs).
/// </para>
/// </remarks>
internal static partial class RuntimeInternals
{
    private const BindingFlags Instance = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
    private const BindingFlags Static = BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic;

    // The negotiated properties. Their fields, because setters would cost more: reflection generates code for a method that it calls
    // again, which delays the start of a process, and a delegate for each call costs 4 thousand instructions.
    [DynamicallyAccessedMembers(DynamicallyAccessedMemberTypes.All)]
    private static readonly Type? s_infoType = Type.GetType("System.Net.Security.SslConnectionInfo, System.Net.Security");

    [DynamicallyAccessedMembers(DynamicallyAccessedMemberTypes.PublicFields | DynamicallyAccessedMemberTypes.NonPublicFields)]
    private static readonly Type? s_optionsType = Type.GetType("System.Net.Security.SslAuthenticationOptions, System.Net.Security");
    private static readonly FieldInfo? s_info = typeof(SslStream).GetField("_connectionInfo", Instance);
    private static readonly FieldInfo? s_options = typeof(SslStream).GetField("_sslAuthenticationOptions", Instance);
    private static readonly FieldInfo? s_protocol = s_infoType?.GetField("<Protocol>k__BackingField", Instance);
    private static readonly FieldInfo? s_suite = s_infoType?.GetField("<TlsCipherSuite>k__BackingField", Instance);
    private static readonly FieldInfo? s_applicationProtocol = s_infoType?.GetField("<ApplicationProtocol>k__BackingField", Instance);
    private static readonly PropertyInfo? s_cipher = Info("DataCipherAlg");
    private static readonly PropertyInfo? s_cipherBits = Info("DataKeySize");
    private static readonly PropertyInfo? s_hash = Info("DataHashAlg");
    private static readonly PropertyInfo? s_hashBits = Info("DataHashKeySize");
    private static readonly PropertyInfo? s_exchange = Info("KeyExchangeAlg");
    private static readonly PropertyInfo? s_exchangeBits = Info("KeyExchKeySize");
    private static readonly MethodInfo? s_mapCipherSuite =
        s_infoType?.GetMethod("MapCipherSuite", Instance, [typeof(TlsCipherSuite)]);

    private static readonly FieldInfo? s_targetHost = s_optionsType?.GetField("<TargetHost>k__BackingField", Instance);

    // The state of the base class.
    private static readonly FieldInfo? s_securityContext = typeof(SslStream).GetField("_securityContext", Instance);
    private static readonly FieldInfo? s_exception = typeof(SslStream).GetField("_exception", Instance);
    private static readonly FieldInfo? s_nestedAuth = typeof(SslStream).GetField("_nestedAuth", Instance);
    private static readonly object? s_inUse = NestedState("StreamInUse");
    private static readonly object? s_notInUse = NestedState("StreamNotInUse");

    [DynamicallyAccessedMembers(DynamicallyAccessedMemberTypes.PublicConstructors | DynamicallyAccessedMemberTypes.NonPublicConstructors)]
    private static readonly Type? s_sslHandle = Type.GetType("Microsoft.Win32.SafeHandles.SafeSslHandle, System.Net.Security");

    // The contents of options.
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

    [DynamicallyAccessedMembers(DynamicallyAccessedMemberTypes.PublicFields | DynamicallyAccessedMemberTypes.NonPublicFields)]
    private static readonly Type? s_policyType = Type.GetType("System.Net.Security.CipherSuitesPolicyPal, System.Net.Security");
    private static readonly FieldInfo? s_tls12Suites = s_policyType?.GetField("_cipherSuites", Instance);
    private static readonly FieldInfo? s_tls13Suites = s_policyType?.GetField("_tls13CipherSuites", Instance);

    // How .NET creates an SSL_CTX, before options change it.
    private static readonly FieldInfo? s_sslMethod =
        Type.GetType("Interop+Ssl+SslMethods, System.Net.Security")?.GetField("SSLv23_method", Static);

    private static readonly Func<nint, SafeHandle>? s_createSslContext = Type.GetType("Interop+Ssl, System.Net.Security")
        ?.GetMethod("SslCtxCreate", Static, [typeof(nint)])?.CreateDelegate<Func<nint, SafeHandle>>();

    private static readonly Func<string[]>? s_signatureAlgorithms = Type.GetType("Interop+OpenSsl, System.Net.Security")
        ?.GetMethod("GetDefaultSignatureAlgorithms", Static, Type.EmptyTypes)?.CreateDelegate<Func<string[]>>();

    private static readonly ValidatePeer? s_validate = Type.GetType("System.Net.Security.CertificateValidation, System.Net.Security")
        ?.GetMethod("BuildChainAndVerifyProperties", Static, ValidateParameters)?.CreateDelegate<ValidatePeer>();

    private static readonly Action<Socket>? s_setToConnected = typeof(Socket)
        .GetMethod("SetToConnected", Instance, Type.EmptyTypes)?.CreateDelegate<Action<Socket>>();

    private static readonly Func<Socket, SocketAsyncEventArgs, CancellationToken, bool>? s_receive = typeof(Socket)
        .GetMethod("ReceiveAsync", Instance, [typeof(SocketAsyncEventArgs), typeof(CancellationToken)])
        ?.CreateDelegate<Func<Socket, SocketAsyncEventArgs, CancellationToken, bool>>();

    private static readonly FieldInfo? s_ownsSocket = typeof(NetworkStream).GetField("_ownsSocket", Instance);

    private static readonly Action<SafeSocketHandle, SocketShutdown>? s_trackShutdown = typeof(SafeSocketHandle)
        .GetMethod("TrackShutdown", Instance, [typeof(SocketShutdown)])?.CreateDelegate<Action<SafeSocketHandle, SocketShutdown>>();

    // Evaluated when the fields of all parts of this class are set.
    private static readonly Lazy<string> s_missing = new(FindMissing);

    private static Type[] CreateParameters =>
        [typeof(X509Certificate2), typeof(X509Certificate2Collection), typeof(bool), typeof(SslCertificateTrust), typeof(bool)];

    private static Type[] ValidateParameters =>
        [typeof(X509Chain), typeof(X509Certificate2), typeof(bool), typeof(bool), typeof(string)];

    private delegate SslPolicyErrors ValidatePeer(
        X509Chain chain, X509Certificate2 certificate, bool checkName, bool isServer, string? host);

    private delegate SslStreamCertificateContext CreateContext(
        X509Certificate2 target,
        X509Certificate2Collection? additional,
        bool offline,
        SslCertificateTrust? trust,
        bool noOcspFetch);

    /// <summary>Gets a value that indicates whether all required members exist with the expected types.</summary>
    public static bool IsAvailable => Missing.Length == 0;

    /// <summary>Gets a description of the members that are missing or have another type, or an empty string.</summary>
    public static string Missing => s_missing.Value;

    /// <summary>
    /// Builds the chain and checks the name by the base class's function, which matches names as OpenSSL does.
    /// </summary>
    /// <exception cref="ArgumentException">IDNA cannot encode the host.</exception>
    public static SslPolicyErrors ValidateCertificate(X509Chain chain, X509Certificate2 certificate, bool checkName, string host) =>
        s_validate!(chain, certificate, checkName, isServer: false, host);

    /// <summary>Sets Socket.Connected to true again, after a failed receive that did not end the connection.</summary>
    public static void SetToConnected(Socket socket) => s_setToConnected!(socket);

    /// <summary>
    /// Calls Socket.ReceiveAsync with event arguments and a token. A canceled receive completes with
    /// <see cref="SocketError.OperationAborted"/> instead of an exception.
    /// </summary>
    public static bool ReceiveAsync(Socket socket, SocketAsyncEventArgs arguments, CancellationToken cancellationToken) =>
        s_receive!(socket, arguments, cancellationToken);

    /// <summary>Returns whether the stream closes its socket when it is disposed.</summary>
    public static bool OwnsSocket(NetworkStream stream) => (bool)s_ownsSocket!.GetValue(stream)!;

    /// <summary>
    /// Records that the sending half of a socket was shut down, although it was not. Closing the socket then does not
    /// reset a connection on which operations are pending.
    /// </summary>
    public static void TrackShutdown(SafeSocketHandle socket) => s_trackShutdown!(socket, SocketShutdown.Send);

    /// <summary>
    /// Returns the private key as held by OpenSSL. It is the context's own reference and must not be disposed.
    /// </summary>
    public static SafeEvpPKeyHandle KeyOf(SslStreamCertificateContext context) => (SafeEvpPKeyHandle)s_key!.GetValue(context)!;

    /// <summary>
    /// Creates a context as SslStream does from a bare certificate: its chain is built, and an OCSP response is fetched
    /// only on request.
    /// </summary>
    public static SslStreamCertificateContext CreateCertificateContext(X509Certificate2 certificate, bool fetchOcsp) =>
        s_createContext!(certificate, null, offline: false, null, !fetchOcsp);

    /// <summary>Returns the OCSP response to staple, if the context has one ready.</summary>
    public static byte[]? OcspResponseOf(SslStreamCertificateContext context) => s_ocspResponse!(context);

    /// <summary>
    /// Returns the trust list of the context, or <see langword="null"/> if it was created without one.
    /// </summary>
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

    /// <summary>
    /// Returns a policy's suites by this OpenSSL's names, without those that it does not know: TLS 1.2 and below, and
    /// TLS 1.3.
    /// </summary>
    public static (string Tls12, string Tls13) NamesOf(CipherSuitesPolicy policy)
    {
        object names = s_policy!.GetValue(policy)!;
        return (Text(s_tls12Suites!), Text(s_tls13Suites!));

        string Text(FieldInfo field) => NativeText.Decode((byte[])field.GetValue(names)!);
    }

    /// <summary>
    /// Creates an SSL_CTX as SslStream does for options that set nothing. The caller must dispose it. It is invalid if
    /// OpenSSL could not create one.
    /// </summary>
    public static SafeHandle CreateSslContext() => s_createSslContext!((nint)s_sslMethod!.GetValue(null)!);

    /// <summary>
    /// Returns OpenSSL's default signature algorithms by name, in their order of preference. Creates SSL_CTXs to find them.
    /// </summary>
    public static string[] GetDefaultSignatureAlgorithms() => s_signatureAlgorithms!();

    /// <summary>
    /// Sets <see cref="SslStream.TargetHostName"/>: a client's name as given, a server's received SNI in readable form,
    /// or an empty string.
    /// </summary>
    public static void PublishTargetHost(SslStream stream, string targetHost) =>
        s_targetHost!.SetValue(s_options!.GetValue(stream), targetHost);

    /// <summary>
    /// Sets <see cref="SslStream.NegotiatedApplicationProtocol"/>, for which the base class also needs the version.
    /// During a handshake it also sets <see cref="SslStream.SslProtocol"/>,
    /// <see cref="SslStream.NegotiatedCipherSuite"/> and the strengths derived from the suite.
    /// </summary>
    /// <param name="stream">The stream whose base members are set.</param>
    /// <param name="protocol">The negotiated version.</param>
    /// <param name="suite">The negotiated suite.</param>
    /// <param name="applicationProtocol">The negotiated ALPN protocol, or <see langword="null"/> for none.</param>
    /// <param name="inHandshake">
    /// Whether a callback is about to read the properties. After the handshake the session provides them.
    /// </param>
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

    /// <summary>Returns the strengths that the base class derives from a suite.</summary>
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

    private static string FindMissing()
    {
        (string Name, bool IsThere)[] members =
        [
            ("SslStream._connectionInfo", s_info is not null && s_info.FieldType == s_infoType),
            ("SslStream._sslAuthenticationOptions", s_options is not null && s_options.FieldType == s_optionsType),
            ("SslConnectionInfo.Protocol", Is(s_protocol, typeof(int))),
            ("SslConnectionInfo.TlsCipherSuite", Is(s_suite, typeof(TlsCipherSuite))),
            ("SslConnectionInfo.ApplicationProtocol", Is(s_applicationProtocol, typeof(byte[]))),
            ("SslConnectionInfo.DataCipherAlg", Is(s_cipher, typeof(int))),
            ("SslConnectionInfo.DataKeySize", Is(s_cipherBits, typeof(int))),
            ("SslConnectionInfo.DataHashAlg", Is(s_hash, typeof(int))),
            ("SslConnectionInfo.DataHashKeySize", Is(s_hashBits, typeof(int))),
            ("SslConnectionInfo.KeyExchangeAlg", Is(s_exchange, typeof(int))),
            ("SslConnectionInfo.KeyExchKeySize", Is(s_exchangeBits, typeof(int))),
            ("SslConnectionInfo.MapCipherSuite", s_mapCipherSuite is not null),
            ("SslAuthenticationOptions.TargetHost", Is(s_targetHost, typeof(string))),
            ("SslStreamCertificateContext.KeyHandle", Is(s_key, typeof(SafeEvpPKeyHandle))),
            ("SslStreamCertificateContext.Trust", Is(s_trust, typeof(SslCertificateTrust))),
            ("SslStreamCertificateContext.Create", s_createContext is not null),
            ("SslStreamCertificateContext.GetOcspResponseNoWaiting", s_ocspResponse is not null),
            ("SslCertificateTrust._store", Is(s_trustStore, typeof(X509Store))),
            ("SslCertificateTrust._trustList", Is(s_trustList, typeof(X509Certificate2Collection))),
            ("SslCertificateTrust._sendTrustInHandshake", Is(s_sendTrust, typeof(bool))),
            ("CipherSuitesPolicy.Pal", s_policy is not null && s_policy.PropertyType == s_policyType),
            ("CipherSuitesPolicyPal._cipherSuites", Is(s_tls12Suites, typeof(byte[]))),
            ("CipherSuitesPolicyPal._tls13CipherSuites", Is(s_tls13Suites, typeof(byte[]))),
            ("Interop.Ssl.SslMethods.SSLv23_method", Is(s_sslMethod, typeof(nint))),
            ("Interop.Ssl.SslCtxCreate", s_createSslContext is not null),
            ("Interop.OpenSsl.GetDefaultSignatureAlgorithms", s_signatureAlgorithms is not null),
            ("Interop.Ssl.SslUpdateOcspStaple, or SslGetPeerCertificate and Interop.Crypto.X509Destroy", CanAttachStaples),
            ("CertificateValidation.BuildChainAndVerifyProperties", s_validate is not null),
            ("SslStream._securityContext", s_securityContext is not null && s_securityContext.FieldType.IsAssignableFrom(s_sslHandle)),
            ("SafeSslHandle..ctor", s_sslHandle?.GetConstructor(Instance, Type.EmptyTypes) is not null),
            ("SslStream._exception", Is(s_exception, typeof(ExceptionDispatchInfo))),
            ("SslStream._nestedAuth", s_inUse is not null && s_notInUse is not null),
            ("Socket.SetToConnected", s_setToConnected is not null),
            ("Socket.ReceiveAsync(SocketAsyncEventArgs, CancellationToken)", s_receive is not null),
            ("NetworkStream._ownsSocket", Is(s_ownsSocket, typeof(bool))),
            ("SafeSocketHandle.TrackShutdown", s_trackShutdown is not null),
        ];
        List<string> missing = [];
        foreach ((string name, bool isThere) in members)
        {
            if (!isThere)
            {
                missing.Add(name);
            }
        }

        return string.Join(", ", missing);
    }

    private static object? NestedState(string name) =>
        s_nestedAuth is { FieldType.IsEnum: true } && Enum.TryParse(s_nestedAuth.FieldType, name, out object? value) ? value : null;

    private static PropertyInfo? Info(string name) => s_infoType?.GetProperty(name, Instance);

    private static bool Is(PropertyInfo? property, Type type) =>
        property is not null && property.PropertyType == type && property.CanRead && property.CanWrite;

    private static bool Is(FieldInfo? field, Type type) => field is not null && field.FieldType == type;
}
/// <summary>Contains the values of the obsolete strength properties of <see cref="SslStream"/>.</summary>
internal readonly record struct CipherStrengths(
    CipherAlgorithmType Cipher,
    int CipherBits,
    HashAlgorithmType Hash,
    int HashBits,
    ExchangeAlgorithmType Exchange,
    int ExchangeBits);

/// <summary>
/// Contains the roots of an <see cref="SslCertificateTrust"/>, and whether their names are sent to clients.
/// </summary>
internal sealed record CertificateTrust(X509Store? Store, X509Certificate2Collection? List, bool Announced)
{
    /// <summary>Gets the roots of the store and of the list.</summary>
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
