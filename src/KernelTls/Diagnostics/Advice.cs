namespace KernelTls.Diagnostics;

/// <summary>
/// Provides the meaning of each fallback reason and how to fix it, in a sentence or two. docs/troubleshooting.md has
/// more on each.
/// </summary>
internal static class Advice
{
    /// <summary>The advice for reasons that this version does not know, such as those of a newer library in `ktls`.</summary>
    public const string Unknown = "See the remarks on this value of KtlsFallbackReason.";

    public static string On(KtlsFallbackReason reason) => reason switch
    {
        KtlsFallbackReason.None => "No fallback.",
        KtlsFallbackReason.NotEnabled => "Kernel TLS was not requested: set DOTNET_SYSTEM_NET_SECURITY_KTLS=1 and restart, or request it in code (KtlsMode.Preferred, UseKernelTls).",
        KtlsFallbackReason.DisabledByMode => "The application chose KtlsMode.Disabled: choose Environment, Preferred or Required.",
        KtlsFallbackReason.DisabledByToggle => "DOTNET_SYSTEM_NET_SECURITY_KTLS=0 or the AppContext switch disables it: unset it or set it to 1, and restart.",
        KtlsFallbackReason.ToggleInvalid => "DOTNET_SYSTEM_NET_SECURITY_KTLS or DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL has a value that is not 1, true, 0 or false: correct it and restart.",
        KtlsFallbackReason.AuthenticatedAsBase => "The handshake was started through a variable of type SslStream: declare it as KtlsStream or var.",
        KtlsFallbackReason.DirectionNotRequested => "KtlsOptions.Directions assigns this direction to OpenSSL: choose Both.",
        KtlsFallbackReason.NotLinux => "The system is not Linux, or there is no native library for its architecture. Supported: linux-x64, linux-arm64, linux-musl-x64 and linux-musl-arm64.",
        KtlsFallbackReason.NativeLibraryMissing => "libKernelTls.Native.so was not deployed with the application: publish for a runtime identifier that the package has, or build it with eng/native.",
        KtlsFallbackReason.NativeLibraryMismatch => "libKernelTls.Native.so is of another build than KernelTls.dll: deploy both from the same version of the package or the bundle, into an empty folder.",
        KtlsFallbackReason.OpenSslNotFound => "No libssl is loaded in the process: install OpenSSL 3 or 4 (Debian: libssl3t64), and do not link it into the program.",
        KtlsFallbackReason.OpenSslTooOld => "OpenSSL is too old: receiving TLS 1.3 and its CCM suites require 3.2, the rest requires 3.0. Upgrade OpenSSL; until then OpenSSL processes this direction.",
        KtlsFallbackReason.OpenSslMismatch => "The libssl in the process is not the OpenSSL that .NET uses: do not link OpenSSL into the program, and check DOTNET_OPENSSL_VERSION_OVERRIDE.",
        KtlsFallbackReason.OpenSslNotSupported => "This version of KernelTls does not know this OpenSSL: update the package, or set DOTNET_OPENSSL_VERSION_OVERRIDE to the version of another installed one (3 or 4).",
        KtlsFallbackReason.OpenSslWithoutKtls => "This OpenSSL was built without kernel TLS: install one that was built with enable-ktls, as Debian's and Ubuntu's are.",
        KtlsFallbackReason.ModuleMissing => "The kernel has no tls module loaded: modprobe tls, as root on the host; echo tls > /etc/modules-load.d/tls.conf loads it after restarts.",
        KtlsFallbackReason.ProbeFailed => "The probe's TCP connections over 127.0.0.1 failed: check that the loopback device is up (ip link set lo up) and that file descriptors are left.",
        KtlsFallbackReason.NotPermitted => "A security policy denies the socket options of kernel TLS: allow setsockopt with TCP_ULP and with the level SOL_TLS (282) in the container's seccomp profile or the security module.",
        KtlsFallbackReason.RuntimeNotSupported => "This version of KernelTls does not know this .NET runtime: update the package.",
        KtlsFallbackReason.RuntimeChanged => "This .NET runtime behaves differently than this version of KernelTls expects: update the package.",
        KtlsFallbackReason.UlpNotSupported => "The kernel, or a sandbox in its place (gVisor), has no upper layer protocols: run on Linux 4.13 or later, without such a sandbox. No module helps.",
        KtlsFallbackReason.KestrelNotSupported => "This version of KernelTls.AspNetCore does not know this ASP.NET Core: update the package.",
        KtlsFallbackReason.KestrelChanged => "This ASP.NET Core behaves differently than this version of KernelTls.AspNetCore expects: update the package.",
        KtlsFallbackReason.NotSocketStream => "The stream under the TLS stream is not exactly a NetworkStream: remove wrappers (proxies, counters, buffers), or put them above the TLS stream.",
        KtlsFallbackReason.NotConnected => "The socket was not connected when the handshake started: connect it first.",
        KtlsFallbackReason.NotTcp => "The socket is not TCP: the kernel encrypts TCP connections only.",
        KtlsFallbackReason.SocketReused => "KtlsOptions.AllowSocketReuse is set: kernel TLS cannot be removed from a socket that is used after TLS. Set Fallback to OpenSsl.",
        KtlsFallbackReason.UlpInUse => "The socket already has an upper layer protocol (ss -tie shows it): use one TLS stream per socket, and no other protocol.",
        KtlsFallbackReason.Mptcp => "The socket is MPTCP: use plain TCP (no IPPROTO_MPTCP, no mptcpize around the program).",
        KtlsFallbackReason.Sockmap => "A BPF program (service mesh, load balancer) put the socket into a sockmap: exempt this program or its ports.",
        KtlsFallbackReason.ProtocolNotOffloadable => "The options allow a TLS version below 1.2: allow TLS 1.2 and 1.3 only, or leave it to the system (SslProtocols.None).",
        KtlsFallbackReason.CipherSuitesPolicy => "The CipherSuitesPolicy contains no suite for an enabled version: add one, preferably AES-GCM.",
        KtlsFallbackReason.Renegotiation => "The server allows renegotiation, which kernel TLS does not support: set AllowRenegotiation to false.",
        KtlsFallbackReason.EncryptionPolicy => "The encryption policy permits connections without encryption: use EncryptionPolicy.RequireEncryption.",
        KtlsFallbackReason.OpenSslRefusedOptions => "OpenSSL refused the certificate, its key or the suites: the error of the stock SslStream says which.",
        KtlsFallbackReason.CipherNotOffloadable => "The kernel does not implement the negotiated cipher (CBC, CCM_8, ARIA, Camellia…): offer AES-GCM or ChaCha20-Poly1305, and prefer them at the server.",
        KtlsFallbackReason.KernelTooOld => "This kernel does not accept keys of this version and cipher, or has no module for the cipher: upgrade it (5.1: TLS 1.3 and AES-256-GCM; 5.2: CCM; 5.11: ChaCha20), or prefer AES-GCM.",
        KtlsFallbackReason.KernelRefused => "OpenSSL did not install the keys of this connection: bytes were already pending, the socket refused the keys, or openssl.cnf sets RecordPadding. Occasional occurrences are harmless.",
        KtlsFallbackReason.PeerClosed => "The peer closed its half before the keys could be installed in the kernel. No action is needed: the connection was ending.",
        KtlsFallbackReason.MaxFragmentLength => "The client requested short records (max_fragment_length), which OpenSSL does not support in the kernel. No action is possible at this end.",
        KtlsFallbackReason.DelayedCertificate => "The endpoint may request the client's certificate later, and this client supports TLS 1.2 only: allow only TLS 1.3 or only HTTP/2.",
        KtlsFallbackReason.TransportInUse => "A connection middleware in front of UseHttps reads or writes the connection's bytes, or another transport accepted it: move the middleware behind UseHttps.",
        KtlsFallbackReason.EndpointNotFound => "A middleware precedes UseHttps in the endpoint's pipeline: call UseHttps first.",
        _ => Unknown,
    };

    /// <summary>Returns the name of the reason and the advice on one line.</summary>
    public static string Named(KtlsFallbackReason reason) => $"{reason}: {On(reason)}";
}
