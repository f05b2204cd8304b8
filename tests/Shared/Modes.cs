using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>
/// Provides the modes in which a contract is tested. They include Kernel if the kernel has TLS or has promised it;
/// otherwise a separate test reports that it was left out.
/// </summary>
public static class Modes
{
    private static readonly SslProtocols[] s_versions = [SslProtocols.Tls12, SslProtocols.Tls13];

    public static bool IncludeKernel { get; } = Cell.KtlsExpected || KtlsPlatform.Probe().IsSupported;

    /// <summary>
    /// Gets SslStream and every mode of KtlsStream. KERNELTLS_MODES, a list of modes, limits a run to these.
    /// </summary>
    public static IEnumerable<TlsMode> Every { get; } = Chosen(Environment.GetEnvironmentVariable("KERNELTLS_MODES"));

    /// <summary>
    /// Gets the modes for tests that take long: in a lab cell the kernel alone, elsewhere the rest without Managed,
    /// which is the stock stream's code.
    /// </summary>
    public static IEnumerable<TlsMode> Costly { get; } =
        Cell.IsLab && Every.Contains(TlsMode.Kernel) ? [TlsMode.Kernel] : Every.Where(m => m != TlsMode.Managed);

    /// <summary>Gets the modes in which this library does the work itself.</summary>
    public static IEnumerable<TlsMode> OnOpenSsl => Every.Where(m => m is TlsMode.DirectOpenSsl or TlsMode.Kernel);

    public static TheoryData<TlsMode, SslProtocols> All => Cross(Every);

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Cross(OnOpenSsl);

    /// <summary>Gets the modes of KtlsStream, for members that SslStream does not have.</summary>
    public static TheoryData<TlsMode, SslProtocols> AllOfKtlsStream => Cross(Every.Where(m => m != TlsMode.Stock));

    /// <summary>Gets the modes that run the stock stream's code, at least one regardless of KERNELTLS_MODES.</summary>
    public static TheoryData<TlsMode, SslProtocols> AllManaged => Cross(Every.Except(OnOpenSsl).DefaultIfEmpty(TlsMode.Stock));

    /// <summary>Returns every mode with each of the values.</summary>
    public static TheoryData<TlsMode, T> With<T>(params IEnumerable<T> values) =>
        [.. from mode in Every from value in values select new TheoryDataRow<TlsMode, T>(mode, value)];

    /// <summary>Does the same as <see cref="With"/>, for tests that take long.</summary>
    public static TheoryData<TlsMode, T> CostlyWith<T>(params IEnumerable<T> values) =>
        [.. from mode in Costly from value in values select new TheoryDataRow<TlsMode, T>(mode, value)];

    /// <summary>Returns every mode and version with each of the values.</summary>
    public static TheoryData<TlsMode, SslProtocols, T> AllWith<T>(params IEnumerable<T> values) =>
        [.. from mode in Every
            from version in s_versions
            from value in values
            select new TheoryDataRow<TlsMode, SslProtocols, T>(mode, version, value)];

    public static TheoryData<TlsMode, SslProtocols, T> AllOnOpenSslWith<T>(params IEnumerable<T> values) =>
        [.. from mode in OnOpenSsl
            from version in s_versions
            from value in values
            select new TheoryDataRow<TlsMode, SslProtocols, T>(mode, version, value)];

    private static TlsMode[] Chosen(string? names)
    {
        TlsMode[] all = IncludeKernel
            ? [TlsMode.Stock, TlsMode.Managed, TlsMode.DirectOpenSsl, TlsMode.Kernel]
            : [TlsMode.Stock, TlsMode.Managed, TlsMode.DirectOpenSsl];
        return string.IsNullOrEmpty(names) ? all : [.. names.Split(',').Select(Enum.Parse<TlsMode>).Where(all.Contains)];
    }

    internal static SslStream Create(
        TlsMode mode,
        Stream inner,
        bool leaveInnerStreamOpen = false,
        RemoteCertificateValidationCallback? validation = null,
        LocalCertificateSelectionCallback? selection = null,
        EncryptionPolicy policy = EncryptionPolicy.RequireEncryption,
        Action<KtlsOptions>? tune = null)
    {
        if (mode == TlsMode.Stock)
        {
            return new SslStream(inner, leaveInnerStreamOpen, validation, selection, policy);
        }

        KtlsOptions options = OptionsOf(mode);
        tune?.Invoke(options);
        return new KtlsStream(inner, leaveInnerStreamOpen, validation, selection, policy, options);
    }

    internal static KtlsOptions OptionsOf(TlsMode mode) => mode switch
    {
        TlsMode.Managed => new KtlsOptions { Mode = KtlsMode.Disabled },
        TlsMode.DirectOpenSsl => new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl },
        TlsMode.Kernel => new KtlsOptions { Mode = KtlsMode.Preferred },
        _ => throw new ArgumentOutOfRangeException(nameof(mode), mode, "SslStream has no such options."),
    };

    /// <summary>Asserts that the stream is in the mode under test.</summary>
    internal static void AssertIn(TlsMode mode, SslStream stream)
    {
        if (mode == TlsMode.Stock)
        {
            Assert.IsType<SslStream>(stream);
            return;
        }

        KtlsOffload offload = Assert.IsType<KtlsStream>(stream).Offload;
        KtlsDataPath path = mode switch
        {
            TlsMode.Managed => KtlsDataPath.Managed,
            TlsMode.DirectOpenSsl => KtlsDataPath.OpenSsl,
            _ => KtlsDataPath.Kernel,
        };
        Assert.Equal(path, offload.Send);

        // OpenSSL before 3.2 receives TLS 1.3 itself.
        bool tooOld = mode == TlsMode.Kernel && stream.SslProtocol == SslProtocols.Tls13
            && KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2);
        Assert.Equal(tooOld ? KtlsDataPath.OpenSsl : path, offload.Receive);
    }

    private static TheoryData<TlsMode, SslProtocols> Cross(IEnumerable<TlsMode> modes)
    {
        TheoryData<TlsMode, SslProtocols> data = [];
        foreach (TlsMode mode in modes)
        {
            foreach (SslProtocols version in s_versions)
            {
                data.Add(mode, version);
            }
        }

        return data;
    }
}
