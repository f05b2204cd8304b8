namespace KernelTls;

/// <summary>Why a direction of a connection is not in the kernel. One value for each cause; values are never reused.</summary>
public enum KtlsFallbackReason
{
    /// <summary>No fallback: the kernel or the network device does the work.</summary>
    None = 0,

    // What was asked for.

    /// <summary>
    /// <see cref="KtlsMode.Environment"/> and neither <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> nor the AppContext switch
    /// <c>System.Net.Security.Ktls</c> is set. Set the variable to <c>1</c> and restart.
    /// </summary>
    NotEnabled = 1,

    /// <summary>The application chose <see cref="KtlsMode.Disabled"/>.</summary>
    DisabledByMode = 2,

    /// <summary>The operator set <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c>, or the application turned the AppContext switch off.</summary>
    DisabledByToggle = 3,

    /// <summary><c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> has a value other than <c>1</c>, <c>true</c>, <c>0</c> or <c>false</c>.</summary>
    ToggleInvalid = 4,

    /// <summary>
    /// <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1</c> or <see cref="KtlsOptions.DirectOpenSsl"/>: OpenSSL on the
    /// socket, without the kernel.
    /// </summary>
    DirectOpenSsl = 5,

    /// <summary>
    /// The handshake was started by a method that <see cref="System.Net.Security.SslStream"/> does not let a subclass
    /// override, through a variable of that type. Declare the variable as <see cref="KtlsStream"/>.
    /// </summary>
    BaseHandshake = 6,

    /// <summary><see cref="KtlsOptions.Directions"/> leaves this direction to OpenSSL.</summary>
    DirectionNotAsked = 7,

    // The platform.

    /// <summary>Not Linux, or not an architecture that the package has a native library for.</summary>
    NotLinux = 20,

    /// <summary>libKernelTls.Native.so is not beside the application and not in the package's assets for this runtime identifier.</summary>
    NativeLibraryMissing = 21,

    /// <summary>No libssl.so.3 can be loaded.</summary>
    OpenSslNotFound = 22,

    /// <summary>
    /// OpenSSL is too old for this: older than 3.0 for everything, older than 3.2 for receiving TLS 1.3 in the kernel, and
    /// for its CCM suites in either direction.
    /// </summary>
    OpenSslTooOld = 23,

    /// <summary>The libssl found is not the one that .NET uses: their versions differ. Check <c>DOTNET_OPENSSL_VERSION_OVERRIDE</c>.</summary>
    OpenSslMismatch = 24,

    /// <summary>This OpenSSL was built without kernel TLS (<c>enable-ktls</c>).</summary>
    OpenSslWithoutKtls = 25,

    /// <summary>
    /// The kernel has no <c>tls</c> module, or it is not loaded and this process may not load it: <c>modprobe tls</c> on
    /// the host.
    /// </summary>
    ModuleMissing = 26,

    /// <summary>
    /// The kernel's abilities could not be found out: the probe's loopback sockets failed. It is tried again after five seconds, when
    /// a connection asks.
    /// </summary>
    ProbeFailed = 27,

    /// <summary>This .NET runtime's SslStream lacks the private members that the connection's properties are published through.</summary>
    RuntimeNotKnown = 28,

    /// <summary>
    /// This ASP.NET Core lacks the private members through which KernelTls.AspNetCore finds an endpoint's TLS options.
    /// </summary>
    KestrelNotKnown = 29,

    /// <summary>
    /// A security policy denies the socket options that kernel TLS needs (EPERM or EACCES): a seccomp profile or a security module.
    /// Allow setsockopt with <c>TCP_ULP</c> and with the level <c>SOL_TLS</c>.
    /// </summary>
    NotPermitted = 30,

    // The transport.

    /// <summary>The inner stream is not exactly a <see cref="System.Net.Sockets.NetworkStream"/>.</summary>
    NotASocket = 40,

    /// <summary>The socket is not connected.</summary>
    NotConnected = 41,

    /// <summary>The socket is not TCP: a Unix domain socket, or another protocol.</summary>
    NotTcp = 42,

    /// <summary>The socket already has an upper layer protocol (TCP_ULP): <c>tls</c> itself, or another one.</summary>
    UlpInUse = 43,

    /// <summary>
    /// The socket is MPTCP (RFC 8684), be it by <c>IPPROTO_MPTCP</c> or by a tool that turns TCP sockets into such: its data
    /// goes over several TCP connections, and the kernel encrypts one.
    /// </summary>
    Mptcp = 44,

    /// <summary>
    /// A BPF program has put the socket into a sockmap or sockhash. That and kernel TLS both replace the socket's functions;
    /// kernels up to 6.12 stack one on the other, later ones refuse the keys.
    /// </summary>
    Sockmap = 45,

    // The authentication options.

    /// <summary>The options allow only protocol versions below TLS 1.2, or enable one of those beside it.</summary>
    ProtocolNotOffloadable = 65,

    /// <summary>The <see cref="System.Net.Security.CipherSuitesPolicy"/> leaves no suite for the enabled versions, or for TLS 1.3 where that is enabled by name.</summary>
    CipherSuitesPolicy = 66,

    /// <summary>A server that allows renegotiation: kernel TLS has none.</summary>
    Renegotiation = 68,

    /// <summary>An encryption policy other than <see cref="System.Net.Security.EncryptionPolicy.RequireEncryption"/>.</summary>
    EncryptionPolicy = 69,

    /// <summary>OpenSSL refused the certificate, its key or the suites; the base class handles them or reports its own error.</summary>
    OpenSslRefusedOptions = 70,

    // What the handshake came to.

    /// <summary>The negotiated cipher suite has no kernel implementation.</summary>
    CipherNotOffloadable = 80,

    /// <summary>This kernel does not take keys of the negotiated protocol version and cipher.</summary>
    KernelTooOld = 81,

    /// <summary>
    /// The kernel takes such keys, yet OpenSSL did not hand them over for this connection: bytes were already pending, the
    /// socket refused, or OpenSSL's configuration asks for padding (<c>RecordPadding</c>).
    /// </summary>
    KernelRefused = 82,

    /// <summary>
    /// The peer had closed its half of the TCP connection before the keys could go to the kernel, which takes them only on a
    /// connection that is open both ways. What the peer still said is read as ever.
    /// </summary>
    PeerClosed = 83,

    /// <summary>
    /// The client asked for shorter records (max_fragment_length: RFC 6066, section 4), which OpenSSL does not have the kernel
    /// make.
    /// </summary>
    MaxFragmentLength = 84,

    // How a Kestrel endpoint is made.

    /// <summary>
    /// The server may ask for the client's certificate later (ClientCertificateMode.DelayCertificate, or
    /// AllowDelayedClientCertificateNegotation), and this client's TLS 1.2 would take a renegotiation for it: the stock TLS serves
    /// this connection. Allow TLS 1.3 alone, or HTTP/2 alone, for kernel TLS on every connection.
    /// </summary>
    DelayedCertificate = 101,

    /// <summary>
    /// A connection middleware in front of UseHttps uses the connection's bytes, or another transport than this package's
    /// accepted it.
    /// </summary>
    TransportInUse = 103,

    /// <summary>
    /// The endpoint's UseHttps was not found when the server started: a middleware stands between the endpoint's defaults and
    /// UseHttps, or ConfigureEndpointDefaults was called after the server's options were made. Call UseHttps first, or move the
    /// middleware behind it.
    /// </summary>
    EndpointNotFound = 104,
}
