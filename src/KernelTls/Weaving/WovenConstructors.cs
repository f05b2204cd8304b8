using System.ComponentModel;
using System.Diagnostics.CodeAnalysis;
using System.Net.Security;

namespace KernelTls.Weaving;

/// <summary>
/// Replaces constructors in code that KernelTls.Weave has rewritten. Matched by return and parameter types. Not for use by hand.
/// </summary>
/// <typeparam name="TAssembly">A class of the woven assembly, which names it in events.</typeparam>
[EditorBrowsable(EditorBrowsableState.Never)]
[SuppressMessage("Design", "CA1000", Justification = "Nobody writes these calls: the type argument comes with the call that the weaver makes.")]
public static class WovenConstructors<TAssembly>
    where TAssembly : class
{
    internal static WovenLibrary Library { get; } = new(typeof(TAssembly).Assembly.GetName().Name ?? "");

    /// <inheritdoc cref="NewSslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy)"/>
    public static SslStream NewSslStream(Stream innerStream) => NewSslStream(innerStream, leaveInnerStreamOpen: false);

    /// <inheritdoc cref="NewSslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy)"/>
    public static SslStream NewSslStream(Stream innerStream, bool leaveInnerStreamOpen) =>
        NewSslStream(innerStream, leaveInnerStreamOpen, null);

    /// <inheritdoc cref="NewSslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy)"/>
    public static SslStream NewSslStream(
        Stream innerStream, bool leaveInnerStreamOpen, RemoteCertificateValidationCallback? userCertificateValidationCallback) =>
        NewSslStream(innerStream, leaveInnerStreamOpen, userCertificateValidationCallback, null);

    /// <inheritdoc cref="NewSslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy)"/>
    public static SslStream NewSslStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback) => NewSslStream(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            EncryptionPolicy.RequireEncryption);

    /// <summary>
    /// Creates a <see cref="KtlsStream"/> if the process has kernel TLS switched on, otherwise an <see cref="SslStream"/>.
    /// </summary>
    /// <param name="innerStream">As for <see cref="SslStream"/>.</param>
    /// <param name="leaveInnerStreamOpen">As for <see cref="SslStream"/>.</param>
    /// <param name="userCertificateValidationCallback">As for <see cref="SslStream"/>.</param>
    /// <param name="userCertificateSelectionCallback">As for <see cref="SslStream"/>.</param>
    /// <param name="encryptionPolicy">As for <see cref="SslStream"/>.</param>
    public static SslStream NewSslStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback,
        EncryptionPolicy encryptionPolicy) => WovenLibrary.IsActive
            ? new KtlsStream(
                innerStream,
                leaveInnerStreamOpen,
                userCertificateValidationCallback,
                userCertificateSelectionCallback,
                encryptionPolicy,
                Library.Options)
            : new SslStream(
                innerStream,
                leaveInnerStreamOpen,
                userCertificateValidationCallback,
                userCertificateSelectionCallback,
                encryptionPolicy);

    /// <summary>Creates a handler whose https connections use kernel TLS if the process has it switched on.</summary>
    public static SocketsHttpHandler NewSocketsHttpHandler() => Library.Weave(new SocketsHttpHandler());

    /// <inheritdoc cref="NewSocketsHttpHandler"/>
    public static HttpClientHandler NewHttpClientHandler() => Library.Weave(new HttpClientHandler());

    /// <summary>Creates a client whose https connections use kernel TLS if the process has it switched on.</summary>
    public static HttpClient NewHttpClient() => new(NewHttpClientHandler());
}
