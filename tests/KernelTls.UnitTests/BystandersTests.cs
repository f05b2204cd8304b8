using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

/// <summary>Tests the certificates that the base class calculates channel bindings from.</summary>
public class BystandersTests
{
    /// <summary>More than are kept.</summary>
    private const int Many = 100;

    static BystandersTests() => Assert.NotNull(Platform.Current);

    [Fact]
    public async Task Each_stream_has_its_own_however_many_there_are()
    {
        X509Certificate2[] certificates = [.. Enumerable.Range(0, Many).Select(NewCertificate)];
        await Parallel.ForAsync(0, 8 * Many, TestContext.Current.CancellationToken, (i, _) =>
        {
            X509Certificate2 certificate = certificates[i % Many];
            using SslStream stream = new(new MemoryStream());
            using SslStream other = new(new MemoryStream());
            Bystanders.Publish(other, certificate);
            Bystanders.Publish(stream, certificates[(i + 1) % Many]);
            Bystanders.Publish(stream, certificate);
            other.Dispose();

            Assert.EndsWith(Convert.ToHexString(SHA256.HashData(certificate.RawData)), BindingOf(stream), StringComparison.Ordinal);
            return ValueTask.CompletedTask;
        });
    }

    [Fact]
    public void Closed_it_stays_in_its_place()
    {
        using SslStream stream = new(new MemoryStream());
        Assert.False(RuntimeInternals.HasSsl(stream));
        RuntimeInternals.PublishSsl(stream, null);
        Assert.False(RuntimeInternals.HasSsl(stream));

        Bystanders.Publish(stream, NewCertificate(0));
        RuntimeInternals.PublishSsl(stream, null);

        Assert.True(RuntimeInternals.HasSsl(stream));
        Assert.Throws<ObjectDisposedException>(() => BindingOf(stream));
    }

    private static string BindingOf(SslStream stream)
    {
        using ChannelBinding binding = stream.TransportContext.GetChannelBinding(ChannelBindingKind.Endpoint)!;
        byte[] bytes = new byte[binding.Size];
        Marshal.Copy(binding.DangerousGetHandle(), bytes, 0, bytes.Length);
        return Convert.ToHexString(bytes);
    }

    private static X509Certificate2 NewCertificate(int number)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new($"CN=certificate {number}", key, HashAlgorithmName.SHA256);
        return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
    }
}
