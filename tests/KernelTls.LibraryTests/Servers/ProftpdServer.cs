namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents ProFTPD, which has the user in a file of its own.</summary>
public sealed class ProftpdServer() : FtpServer("proftpd")
{
    // Debian's unprivileged user, who owns the files.
    private const string Owner = "65534:65534";

    public override (string Name, string Password) User => ("tester", "correct-horse");

    protected override string[] Command => [Program, "-c", Configuration];

    protected override async Task PrepareAsync()
    {
        await CreateUploadsAsync(Owner);
        string hash = (await RunAsync("openssl", "passwd", "-5", User.Password)).Trim();
        string passwords = Path.Combine(Files, "passwd");
        File.WriteAllText(passwords, $"{User.Name}:{hash}:{Owner}::{Path.GetDirectoryName(Uploads)}:/bin/false\n");
        await RunAsync("chmod", "600", passwords, Key);
        File.WriteAllText(Configuration, $"""
            LoadModule mod_tls.c
            <IfModule !mod_ls.c>
              LoadModule mod_ls.c
            </IfModule>
            <IfModule !mod_xfer.c>
              LoadModule mod_xfer.c
            </IfModule>
            ServerType inetd
            DefaultAddress 127.0.0.1
            Port {Port}
            UseIPv6 off
            UseReverseDNS off
            PidFile {Files}/pid
            ScoreboardFile {Files}/scoreboard
            WtmpLog off
            User nobody
            Group nogroup
            AuthOrder mod_auth_file.c
            AuthUserFile {passwords}
            RequireValidShell off
            DefaultRoot ~
            TLSEngine on
            TLSRequired on
            TLSProtocol TLSv1.2 TLSv1.3
            TLSECCertificateFile {Certificate}
            TLSECCertificateKeyFile {Key}
            <IfModule mod_delay.c>
              DelayEngine off
            </IfModule>

            """);
    }

    private string Configuration => Path.Combine(Files, "proftpd.conf");
}
