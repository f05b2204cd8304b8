using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Contains a certificate of this end with its key.</summary>
/// <param name="Certificate">The certificate.</param>
/// <param name="Chain">Its file's certificates, with the intermediates.</param>
internal sealed record OwnCertificate(X509Certificate2 Certificate, X509Certificate2Collection Chain)
{
    private const string Expected =
        "Expected a PEM file with the certificate first and --key with its private key in PEM, or a PKCS #12 file (.pfx, .p12) with both; --password-file, if one is encrypted.";

    /// <summary>Loads a PEM file, or a PKCS #12 file, whose contents tell which it is.</summary>
    /// <param name="path">The file with the certificate.</param>
    /// <param name="key">The PEM file with the private key, or <see langword="null"/> if it is in the first file.</param>
    /// <param name="passwordPath">The file whose first line is the password, or <see langword="null"/>.</param>
    /// <exception cref="ToolFailedException">A file cannot be read or used.</exception>
    public static OwnCertificate Load(string path, string? key, string? passwordPath)
    {
        byte[] contents = Read("--certificate", path);
        string? keyText = key is null ? null : System.Text.Encoding.UTF8.GetString(Read("--key", key));
        string? password = passwordPath is null
            ? null
            : System.Text.Encoding.UTF8.GetString(Read("--password-file", passwordPath)).Split('\n')[0].TrimEnd('\r');
        try
        {
            return IsPkcs12(contents) && key is null
                ? FromPkcs12(contents, password)
                : FromPem(System.Text.Encoding.UTF8.GetString(contents), keyText, password);
        }
        catch (Exception e) when (e is CryptographicException or ArgumentException)
        {
            string files = $"--certificate '{path}'{(key is null ? "" : $" with --key '{key}'")}{(passwordPath is null ? "" : $" and --password-file '{passwordPath}'")}";
            throw new ToolFailedException(
                ExitCode.WrongUsage, $"{files} cannot be used: {e.Message.Split('\n')[0].TrimEnd('.')}. {Expected}", e);
        }
    }

    private static bool IsPkcs12(byte[] contents) => X509Certificate2.GetCertContentType(contents) == X509ContentType.Pkcs12;

    private static OwnCertificate FromPkcs12(byte[] contents, string? password)
    {
        X509Certificate2Collection all = X509CertificateLoader.LoadPkcs12Collection(contents, password);
        X509Certificate2 own = all.FirstOrDefault(c => c.HasPrivateKey) ?? throw new CryptographicException("It contains no private key");
        return new OwnCertificate(own, all);
    }

    private static OwnCertificate FromPem(string certificate, string? key, string? password)
    {
        X509Certificate2Collection chain = [];
        chain.ImportFromPem(certificate);
        return new OwnCertificate(
            password is null
                ? X509Certificate2.CreateFromPem(certificate, key ?? certificate)
                : X509Certificate2.CreateFromEncryptedPem(certificate, key ?? certificate, password),
            chain);
    }

    private static byte[] Read(string option, string path)
    {
        try
        {
            return File.ReadAllBytes(path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw new ToolFailedException(ExitCode.WrongUsage, $"{option} '{path}' cannot be read: {e.Message.TrimEnd('.')}. Expected a file that this user can read.", e);
        }
    }
}
