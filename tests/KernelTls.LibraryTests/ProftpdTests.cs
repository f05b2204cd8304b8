using System.Security.Authentication;
using KernelTls.LibraryTests.Servers;

namespace KernelTls.LibraryTests;

/// <summary>Tests FTP over TLS with ProFTPD.</summary>
public sealed class ProftpdTests(ProftpdServer server) : FtpsTest(server), IClassFixture<ProftpdServer>
{
    /// <summary>
    /// With TLS 1.3, ProFTPD sends tickets on the control connection alone, two at most. SslStream and KtlsStream use each once (RFC 8446, appendix
    /// C.4), so that a later data connection resumes nothing.
    /// </summary>
    [Fact]
    public Task Many_small_files_go_up_and_come_down() => TransferManyFilesAsync(SslProtocols.Tls12);
}
