namespace KernelTls.Demo;

/// <summary>Specifies the mode that the environment variables request.</summary>
internal enum RequestedMode
{
    KernelTls,

    /// <summary>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1 while kernel TLS is not on.</summary>
    DirectOpenSsl,

    /// <summary>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1 while kernel TLS is on and not available.</summary>
    OpenSslInstead,

    /// <summary>DOTNET_SYSTEM_NET_SECURITY_KTLS=0.</summary>
    StockSslStream,
}
