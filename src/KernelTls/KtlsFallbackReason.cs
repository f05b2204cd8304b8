namespace KernelTls;

/// <summary>
/// Specifies why a direction of a connection is not in the kernel. Each cause has one value; values are never reused.
/// </summary>
public enum KtlsFallbackReason
{
    /// <summary>There is no fallback: the kernel or the network device processes the records.</summary>
    None = 0,

    // Configuration.

    /// <summary>
    /// The mode is <see cref="KtlsMode.Environment"/>, and neither <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> nor the
    /// AppContext switch <c>System.Net.Security.Ktls</c> is set. Set the variable to <c>1</c> and restart the process.
    /// </summary>
    NotEnabled = 1,

    /// <summary>
    /// The application chose <see cref="KtlsMode.Disabled"/>. As a reason why OpenSSL does not use the socket:
    /// <see cref="KtlsMode.Required"/> or <see cref="KtlsFallback.SslStream"/>.
    /// </summary>
    DisabledByMode = 2,

    /// <summary>
    /// The operator set <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c>, or the application turned the AppContext switch off.
    /// </summary>
    DisabledByToggle = 3,

    /// <summary>
    /// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> or <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL</c> has a value other than <c>1</c>,
    /// <c>true</c>, <c>0</c> or <c>false</c>.
    /// </summary>
    ToggleInvalid = 4,

    /// <summary>
    /// The handshake was started through a variable of type <see cref="System.Net.Security.SslStream"/>, by a method
    /// that a subclass cannot override. Declare the variable as <see cref="KtlsStream"/>.
    /// </summary>
    AuthenticatedAsBase = 6,

    /// <summary><see cref="KtlsOptions.Directions"/> assigns this direction to OpenSSL.</summary>
    DirectionNotRequested = 7,

    // The platform.

    /// <summary>The operating system is not Linux, or the package has no native library for the architecture.</summary>
    NotLinux = 20,

    /// <summary>
    /// libKernelTls.Native.so is neither beside the application nor in the package's assets for this runtime
    /// identifier.
    /// </summary>
    NativeLibraryMissing = 21,

    /// <summary>
    /// .NET has loaded no libssl into the process: OpenSSL is not installed, or it is linked into the program.
    /// </summary>
    OpenSslNotFound = 22,

    /// <summary>
    /// The OpenSSL version is too old. Kernel TLS requires 3.0. Receiving TLS 1.3 in the kernel, and the TLS 1.3 CCM
    /// suites in either direction, require 3.2.
    /// </summary>
    OpenSslTooOld = 23,

    /// <summary>
    /// The libssl in the process has another version than the OpenSSL that .NET uses. .NET's own is linked into the program.
    /// </summary>
    OpenSslMismatch = 24,

    /// <summary>This OpenSSL was built without kernel TLS (<c>enable-ktls</c>).</summary>
    OpenSslWithoutKtls = 25,

    /// <summary>
    /// The kernel has no <c>tls</c> module, or the module is not loaded and this process may not load it. Run
    /// <c>modprobe tls</c> on the host.
    /// </summary>
    ModuleMissing = 26,

    /// <summary>
    /// The probe of the kernel's capabilities failed because it could not create its loopback connections. It is
    /// repeated when a connection needs it, at most once every five seconds.
    /// </summary>
    ProbeFailed = 27,

    /// <summary>
    /// This .NET runtime lacks private members that this library uses, or their signatures differ.
    /// <see cref="KtlsPlatform.NotSupportedDetail"/> names them. Update the package.
    /// </summary>
    RuntimeNotSupported = 28,

    /// <summary>
    /// This ASP.NET Core lacks the private members through which KernelTls.AspNetCore finds an endpoint's TLS options.
    /// Update the package.
    /// </summary>
    KestrelNotSupported = 29,

    /// <summary>
    /// A security policy, such as a seccomp profile or a security module, denies the socket options of kernel TLS
    /// (EPERM or EACCES). Allow setsockopt with <c>TCP_ULP</c> and with the level <c>SOL_TLS</c>.
    /// </summary>
    NotPermitted = 30,

    /// <summary>
    /// This .NET runtime has the private members that this library uses, but a trial found that one of them behaves
    /// differently than this version expects. <see cref="KtlsPlatform.NotSupportedDetail"/> names the member and the
    /// difference. Update the package.
    /// </summary>
    RuntimeChanged = 31,

    /// <summary>
    /// The kernel, or a sandbox in its place such as gVisor, does not implement the socket option <c>TCP_ULP</c> (ENOPROTOOPT, EOPNOTSUPP or
    /// ENOSYS), so no module can add kernel TLS. Run on Linux 4.13 or later, without such a sandbox.
    /// </summary>
    UlpNotSupported = 32,

    /// <summary>
    /// The OpenSSL that .NET uses has a newer major version than 4, or lacks a function that this library needs.
    /// <see cref="KtlsPlatform.NotSupportedDetail"/> has the version or the function. Update the package, or have .NET use
    /// another OpenSSL (<c>DOTNET_OPENSSL_VERSION_OVERRIDE=3</c>).
    /// </summary>
    OpenSslNotSupported = 33,

    /// <summary>
    /// This ASP.NET Core has the private members that KernelTls.AspNetCore uses, but a trial at the start of the server found that one of them
    /// behaves differently than this version expects. The log names the member and the difference. Update the package.
    /// </summary>
    KestrelChanged = 34,

    /// <summary>
    /// libKernelTls.Native.so is of another build than KernelTls.dll: it has another interface. Deploy both from the same version of the package
    /// or of the bundle.
    /// </summary>
    NativeLibraryMismatch = 35,

    // The transport.

    /// <summary>The inner stream is not exactly a <see cref="System.Net.Sockets.NetworkStream"/>.</summary>
    NotSocketStream = 40,

    /// <summary>The socket is not connected.</summary>
    NotConnected = 41,

    /// <summary>The socket is not a TCP socket, for example a Unix domain socket.</summary>
    NotTcp = 42,

    /// <summary>
    /// The socket already has an upper layer protocol (TCP_ULP): <c>tls</c>, still without keys, or another one. OpenSSL on the socket can be
    /// used (<see cref="KtlsOptions.Fallback"/>).
    /// </summary>
    UlpInUse = 43,

    /// <summary>
    /// The socket is an MPTCP socket (RFC 8684), created with <c>IPPROTO_MPTCP</c> or converted by a tool. Its data
    /// travels over several TCP connections, and the kernel encrypts only one. OpenSSL on the socket can be used
    /// (<see cref="KtlsOptions.Fallback"/>).
    /// </summary>
    Mptcp = 44,

    /// <summary>
    /// A BPF program has put the socket into a sockmap or sockhash. Sockmaps and kernel TLS both replace the socket's
    /// functions: kernels before 6.1.189, 6.12.111, 6.18.53 and 7.2 stack one on the other (CVE-2026-93824), and corrected kernels
    /// refuse the keys. OpenSSL on the socket can be used (<see cref="KtlsOptions.Fallback"/>).
    /// </summary>
    Sockmap = 45,

    /// <summary>
    /// The socket carries other data after TLS (<see cref="KtlsOptions.AllowSocketReuse"/>), and kernel TLS cannot be removed from it.
    /// OpenSSL on the socket can be used (<see cref="KtlsOptions.Fallback"/>).
    /// </summary>
    SocketReused = 46,

    // The authentication options.

    /// <summary>The options enable a protocol version below TLS 1.2, alone or together with later versions.</summary>
    ProtocolNotOffloadable = 65,

    /// <summary>
    /// The <see cref="System.Net.Security.CipherSuitesPolicy"/> contains no suite for the enabled versions, or none for
    /// TLS 1.3 when TLS 1.3 is enabled by name.
    /// </summary>
    CipherSuitesPolicy = 66,

    /// <summary>The server options allow renegotiation, which kernel TLS does not support.</summary>
    Renegotiation = 68,

    /// <summary>
    /// The encryption policy is not <see cref="System.Net.Security.EncryptionPolicy.RequireEncryption"/>.
    /// </summary>
    EncryptionPolicy = 69,

    /// <summary>
    /// OpenSSL refused the certificate, its key or the suites. The base class handles them or reports its own error.
    /// </summary>
    OpenSslRefusedOptions = 70,

    // The result of the handshake.

    /// <summary>The negotiated cipher suite has no kernel implementation.</summary>
    CipherNotOffloadable = 80,

    /// <summary>This kernel does not accept keys for the negotiated protocol version and cipher.</summary>
    KernelTooOld = 81,

    /// <summary>
    /// The kernel accepts keys of this kind, but OpenSSL did not install them for this connection: bytes were already
    /// pending, the socket refused the keys, or OpenSSL's configuration requests padding (<c>RecordPadding</c>).
    /// </summary>
    KernelRefused = 82,

    /// <summary>
    /// The peer closed its half of the TCP connection before the keys could be installed. The kernel accepts keys only
    /// while both halves are open. Data that the peer sent before closing is still received.
    /// </summary>
    PeerClosed = 83,

    /// <summary>
    /// The client negotiated a maximum fragment length (RFC 6066, section 4). OpenSSL does not support shorter records
    /// in the kernel.
    /// </summary>
    MaxFragmentLength = 84,

    // Kestrel endpoints.

    /// <summary>
    /// The server may request the client's certificate after the handshake (ClientCertificateMode.DelayCertificate or
    /// AllowDelayedClientCertificateNegotation), and this client supports only TLS 1.2, which needs a renegotiation for
    /// that. The default SslStream serves this connection. To use kernel TLS on every connection, allow only TLS 1.3 or
    /// only HTTP/2.
    /// </summary>
    DelayedCertificate = 101,

    /// <summary>
    /// A connection middleware in front of UseHttps reads or writes the connection's bytes, or a transport other than
    /// this package's accepted the connection.
    /// </summary>
    TransportInUse = 103,

    /// <summary>
    /// The endpoint's UseHttps was not found when the server started: a middleware precedes UseHttps in the endpoint's
    /// pipeline, or ConfigureEndpointDefaults was called after the server's options were created. Call UseHttps first,
    /// or move the middleware behind it.
    /// </summary>
    EndpointNotFound = 104,
}
