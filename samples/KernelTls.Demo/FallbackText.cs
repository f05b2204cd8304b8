namespace KernelTls.Demo;

/// <summary>Describes fallback reasons in words.</summary>
internal static class FallbackText
{
    public static string Of(KtlsFallbackReason reason) => reason switch
    {
        KtlsFallbackReason.None => "it is in the kernel",
        KtlsFallbackReason.DisabledByToggle => "DOTNET_SYSTEM_NET_SECURITY_KTLS=0 switches kernel TLS off",
        KtlsFallbackReason.NotEnabled => "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1 alone puts OpenSSL on the socket, without the kernel",
        KtlsFallbackReason.DirectionNotRequested => "KtlsOptions.Directions leaves this direction to OpenSSL",
        KtlsFallbackReason.NativeLibraryMissing => "libKernelTls.Native.so is not beside the program; eng/native builds it",
        KtlsFallbackReason.OpenSslNotFound => ".NET has loaded no libssl; apt-get install libssl3",
        KtlsFallbackReason.OpenSslTooOld =>
            $"{KtlsPlatform.Probe().OpenSslVersionText} is too old: OpenSSL hands the receiving keys of TLS 1.3 to the kernel since 3.2, TLS 1.2 since 3.0",
        KtlsFallbackReason.OpenSslMismatch => "the libssl found is not the one that .NET uses",
        KtlsFallbackReason.OpenSslNotSupported => $"KernelTls does not know this OpenSSL: {KtlsPlatform.Probe().NotSupportedDetail}",
        KtlsFallbackReason.OpenSslWithoutKtls => $"{KtlsPlatform.Probe().OpenSslVersionText} was built without kernel TLS",
        KtlsFallbackReason.ModuleMissing => "this kernel has no tls module, or it is not loaded: modprobe tls",
        KtlsFallbackReason.Mptcp => "the socket is MPTCP, and the kernel has TLS for single TCP connections",
        KtlsFallbackReason.Sockmap => "a BPF program has put the socket into a sockmap",
        KtlsFallbackReason.KernelTooOld => $"Linux {KtlsPlatform.KernelRelease} does not take keys of this version and cipher",
        KtlsFallbackReason.CipherNotOffloadable => "the kernel does not implement this cipher suite",
        KtlsFallbackReason.KernelRefused => "the kernel takes such keys, yet OpenSSL did not hand them over for this connection",
        KtlsFallbackReason.MaxFragmentLength => "the client asked for shorter records, which OpenSSL makes itself",
        KtlsFallbackReason.PeerClosed => "the peer had closed its half of the connection before the keys could go to the kernel",
        _ => $"see the documentation of KtlsFallbackReason.{reason}",
    };
}
