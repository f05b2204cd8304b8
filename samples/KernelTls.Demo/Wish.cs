namespace KernelTls.Demo;

/// <summary>What the environment asks for.</summary>
internal enum Wish
{
    KernelTls,

    /// <summary>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1 while kernel TLS is not on.</summary>
    DirectOpenSsl,

    /// <summary>DOTNET_SYSTEM_NET_SECURITY_KTLS=0.</summary>
    StockSslStream,
}
