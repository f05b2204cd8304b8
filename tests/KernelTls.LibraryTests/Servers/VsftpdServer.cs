namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents vsftpd, which requires close_notify as well.</summary>
public sealed class VsftpdServer() : FtpServer("vsftpd")
{
    public override (string Name, string Password) User => ("anonymous", "none");

    protected override string[] Command => [Program, Configuration];

    protected override async Task PrepareAsync()
    {
        string empty = Path.Combine(Files, "empty");
        Directory.CreateDirectory(empty);
        await CreateUploadsAsync("ftp:ftp");
        File.WriteAllText(Configuration, $"""
            listen=NO
            anonymous_enable=YES
            anon_root={Path.GetDirectoryName(Uploads)}
            write_enable=YES
            anon_upload_enable=YES
            anon_umask=022
            secure_chroot_dir={empty}
            seccomp_sandbox=NO
            ssl_enable=YES
            allow_anon_ssl=YES
            force_anon_logins_ssl=YES
            force_anon_data_ssl=YES
            require_ssl_reuse=YES
            strict_ssl_read_eof=YES
            strict_ssl_write_shutdown=YES
            ssl_ciphers=DEFAULT
            rsa_cert_file={Certificate}
            rsa_private_key_file={Key}

            """);
    }

    private string Configuration => Path.Combine(Files, "vsftpd.conf");
}
