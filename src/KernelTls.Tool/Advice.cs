namespace KernelTls.Tool;

/// <summary>What a fallback reason means and what to do about it, in a sentence or two. docs/troubleshooting.md has more on each.</summary>
internal static class Advice
{
    /// <summary>For reasons that this version of the tool does not know.</summary>
    public const string Unknown = "See the remarks on this value of KtlsFallbackReason.";

    public static string On(KtlsFallbackReason reason) => reason switch
    {
        KtlsFallbackReason.None => "Nothing is in the way.",
        KtlsFallbackReason.NotEnabled => "Nobody asked for kernel TLS: set DOTNET_SYSTEM_NET_SECURITY_KTLS=1 and restart, or ask for it in code (KtlsMode.Preferred, UseKernelTls).",
        KtlsFallbackReason.DisabledByMode => "The application chose KtlsMode.Disabled: choose Environment, Preferred or Required.",
        KtlsFallbackReason.DisabledByToggle => "DOTNET_SYSTEM_NET_SECURITY_KTLS=0, or the AppContext switch, has it switched off: unset it or set it to 1, and restart.",
        KtlsFallbackReason.ToggleInvalid => "DOTNET_SYSTEM_NET_SECURITY_KTLS has a value that is not 1, true, 0 or false: correct it and restart.",
        KtlsFallbackReason.DirectOpenSsl => "OpenSSL on the socket was asked for, without the kernel: unset DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL and KtlsOptions.DirectOpenSsl.",
        KtlsFallbackReason.BaseHandshake => "The handshake was started through a variable of type SslStream: declare it as KtlsStream, or var.",
        KtlsFallbackReason.DirectionNotAsked => "KtlsOptions.Directions leaves this direction to OpenSSL: choose Both.",
        KtlsFallbackReason.NotLinux => "Not Linux, or an architecture without a native library (there are linux-x64, linux-arm64 and linux-musl-x64).",
        KtlsFallbackReason.NativeLibraryMissing => "libKernelTls.Native.so was not deployed with the application: publish for a runtime identifier that the package has, or build it with eng/native.",
        KtlsFallbackReason.OpenSslNotFound => "No libssl.so.3 can be loaded: install OpenSSL 3 (Debian: libssl3, libssl3t64).",
        KtlsFallbackReason.OpenSslTooOld => "OpenSSL is too old for this: 3.2 gives the kernel received TLS 1.3 and the CCM suites of TLS 1.3, 3.0 the rest. Upgrade OpenSSL; until then OpenSSL does that part.",
        KtlsFallbackReason.OpenSslMismatch => "The libssl found is another version than the one .NET has loaded: check DOTNET_OPENSSL_VERSION_OVERRIDE and the library path.",
        KtlsFallbackReason.OpenSslWithoutKtls => "This OpenSSL was built without kernel TLS: install one built with enable-ktls (Debian's and Ubuntu's are).",
        KtlsFallbackReason.ModuleMissing => "The kernel has no tls module loaded: modprobe tls, as root on the host; echo tls > /etc/modules-load.d/tls.conf keeps it over restarts.",
        KtlsFallbackReason.ProbeFailed => "The probe's TCP connections over 127.0.0.1 failed: is the loopback device up (ip link set lo up), and are there file descriptors left?",
        KtlsFallbackReason.NotPermitted => "A security policy denies the socket options of kernel TLS: allow setsockopt with TCP_ULP and with the level SOL_TLS (282) in the container's seccomp profile, or in the security module.",
        KtlsFallbackReason.RuntimeNotKnown => "This .NET runtime is not one that this version of KernelTls knows: update the package.",
        KtlsFallbackReason.KestrelNotKnown => "This ASP.NET Core is not one that this version of KernelTls.AspNetCore knows: update the package.",
        KtlsFallbackReason.NotASocket => "The stream under the TLS stream is not exactly a NetworkStream: take wrappers (proxies, counters, buffers) out, or put them above.",
        KtlsFallbackReason.NotConnected => "The socket was not connected when the handshake started: connect first.",
        KtlsFallbackReason.NotTcp => "The socket is not TCP: the kernel encrypts TCP connections only.",
        KtlsFallbackReason.UlpInUse => "Another upper layer protocol has the socket (ss -tie shows it): one TLS stream per socket, and no second protocol below it.",
        KtlsFallbackReason.Mptcp => "The socket is MPTCP: make it plain TCP (no IPPROTO_MPTCP, no mptcpize around the program).",
        KtlsFallbackReason.Sockmap => "A BPF program (service mesh, load balancer) put the socket into a sockmap: exempt this program or its ports there.",
        KtlsFallbackReason.ProtocolNotOffloadable => "The options allow a TLS version below 1.2: allow TLS 1.2 and 1.3 only, or leave it to the system (SslProtocols.None).",
        KtlsFallbackReason.CipherSuitesPolicy => "The CipherSuitesPolicy leaves no suite for a version that is enabled: add one, AES-GCM for choice.",
        KtlsFallbackReason.Renegotiation => "The server allows renegotiation, which kernel TLS cannot have: set AllowRenegotiation to false.",
        KtlsFallbackReason.EncryptionPolicy => "The encryption policy allows no encryption: use EncryptionPolicy.RequireEncryption.",
        KtlsFallbackReason.OpenSslRefusedOptions => "OpenSSL refused the certificate, its key or the suites: the error of the stock stream says which.",
        KtlsFallbackReason.CipherNotOffloadable => "The kernel does not implement the negotiated cipher (CBC, CCM_8, ARIA, Camellia…): offer AES-GCM or ChaCha20-Poly1305, and prefer them at the server.",
        KtlsFallbackReason.KernelTooOld => "This kernel does not take keys of this version and cipher, or has no module for the cipher: upgrade it (5.1 TLS 1.3 and AES-256-GCM, 5.2 CCM, 5.11 ChaCha20), or prefer AES-GCM.",
        KtlsFallbackReason.KernelRefused => "OpenSSL did not hand over the keys of this connection: bytes were already waiting, the socket refused, or openssl.cnf sets RecordPadding. Seen now and then it is harmless.",
        KtlsFallbackReason.PeerClosed => "The peer had closed its half before the keys could go to the kernel. Nothing to do: the connection was at its end.",
        KtlsFallbackReason.MaxFragmentLength => "The client asked for short records (max_fragment_length), which the kernel does not make. Nothing to do at this end.",
        KtlsFallbackReason.DelayedCertificate => "The endpoint may ask for the client's certificate later, and this client has TLS 1.2 only: allow TLS 1.3 alone, or HTTP/2 alone.",
        KtlsFallbackReason.TransportInUse => "A connection middleware in front of UseHttps uses the connection's bytes, or another transport accepted it: move it behind UseHttps.",
        KtlsFallbackReason.EndpointNotFound => "A middleware stands between the endpoint's defaults and its UseHttps: call UseHttps first.",
        _ => Unknown,
    };

    /// <summary>The reason's name and the advice, for one line.</summary>
    public static string Named(KtlsFallbackReason reason) => $"{reason}: {On(reason)}";
}
