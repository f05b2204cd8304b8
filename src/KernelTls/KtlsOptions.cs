namespace KernelTls;

/// <summary>How a <see cref="KtlsStream"/> uses kernel TLS. Read when a handshake starts; not thread-safe while being changed.</summary>
public sealed class KtlsOptions
{
    private KtlsMode _mode = KtlsMode.Environment;

    /// <summary>Whether kernel TLS is used. Default: <see cref="KtlsMode.Environment"/>.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not a <see cref="KtlsMode"/>.</exception>
    public KtlsMode Mode
    {
        get => _mode;
        set
        {
            if (!Enum.IsDefined(value))
            {
                throw new ArgumentOutOfRangeException(
                    nameof(value), value, "Expected Environment, Disabled, Preferred or Required.");
            }

            _mode = value;
        }
    }

    /// <summary>
    /// Binds OpenSSL to the socket but keeps the kernel out of it, as <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1</c>
    /// does for the whole process. An experiment that isolates the cost of the socket BIO. Default: <see langword="false"/>.
    /// </summary>
    public bool DirectOpenSsl { get; set; }
}
