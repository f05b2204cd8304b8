using System.Globalization;
using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Runs openssl ocsp, which answers for the test authority, and creates a certificate for localhost that names it.
/// </summary>
internal sealed class OcspResponder : IDisposable
{
    /// <summary>
    /// The serial number, fixed in advance: the certificate names the responder, and the responder must know the
    /// certificate from the start.
    /// </summary>
    public const string Serial = "5A01B7C3";

    private readonly TemporaryDirectory _directory = new();
    private readonly ExternalProgram _program;

    private OcspResponder()
    {
        // Valid, expiry, not revoked, serial number, file, subject.
        File.WriteAllText(_directory["index"], $"V\t491231235959Z\t\t{Serial}\tunknown\t/CN=localhost\n");
        (string authority, string key) = Certificates.WritePem(Certificates.Authority, _directory.FullName);
        _program = ExternalProgram.Start(
            "openssl",
            _directory.FullName,
            "ocsp", "-port", "0", "-index", _directory["index"], "-CA", authority, "-rsigner", authority, "-rkey", key, "-ndays", "2");
    }

    /// <summary>Gets a certificate for which there is a response.</summary>
    public X509Certificate2 Certificate { get; private set; } = null!;

    /// <summary>Starts the program, which chooses its port.</summary>
    public static async Task<OcspResponder> StartAsync()
    {
        OcspResponder responder = new();
        try
        {
            // The output is: ACCEPT [::]:PORT PID=…
            await responder._program.OutputUpToAsync("ACCEPT ");
            string address = (await responder._program.OutputUpToAsync("\n")).Split(' ', '\n')[0];
            responder.Certificate = MakeCertificate(int.Parse(address.Split(':')[^1], CultureInfo.InvariantCulture));
            return responder;
        }
        catch
        {
            responder.Dispose();
            throw;
        }
    }

    /// <summary>Creates a certificate whose status is available at this port.</summary>
    public static X509Certificate2 MakeCertificate(int port)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=localhost", key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509AuthorityInformationAccessExtension([$"http://127.0.0.1:{port}/"], null));
        using X509Certificate2 certificate = request.Create(
            Certificates.Authority, DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(30), Convert.FromHexString(Serial));
        return certificate.CopyWithPrivateKey(key);
    }

    /// <summary>
    /// Returns a context that may fetch a response unless it is offline. The root completes the chain.
    /// </summary>
    public static SslStreamCertificateContext Context(X509Certificate2 certificate, bool offline) =>
        SslStreamCertificateContext.Create(certificate, [Certificates.Authority], offline);

    /// <summary>Returns a context that has its response.</summary>
    public async Task<SslStreamCertificateContext> ReadyContextAsync()
    {
        SslStreamCertificateContext context = Context(Certificate, offline: false);
        Assert.NotNull(await FetchAsync(context).InTime($"the response of openssl ocsp, which says: {_program.Errors}"));
        return context;
    }

    public void Dispose()
    {
        _program.Dispose();
        _directory.Dispose();
        Certificate?.Dispose();
    }

    /// <summary>Returns the response, once it has been fetched. SslStream never waits for it.</summary>
    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "GetOcspResponseAsync")]
    private static extern ValueTask<byte[]?> FetchAsync(SslStreamCertificateContext context);
}
