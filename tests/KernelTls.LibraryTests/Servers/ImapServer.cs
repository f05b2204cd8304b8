using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents Dovecot, which accepts any user with the right password and a client certificate.</summary>
public sealed class ImapServer() : Server("dovecot")
{
    public const string Password = "correct-horse";

    // The mails belong to Debian's unprivileged user.
    private const string Owner = "65534";

    protected override int EndSignal => SigKill;

    protected override async Task PrepareAsync()
    {
        string mail = Path.Combine(Files, "mail");
        Directory.CreateDirectory(mail);
        await RunAsync("chown", $"{Owner}:{Owner}", mail);
        await RunAsync("chmod", "755", Files);
        bool isOld = (await RunAsync(Program, "--version")).StartsWith("2.3.", StringComparison.Ordinal);
        File.WriteAllText(Configuration, $$"""
            {{(isOld ? Version23(mail) : Version24(mail))}}
            base_dir = {{Files}}/run
            state_dir = {{Files}}/run
            log_path = /dev/stderr
            protocols = imap
            listen = 127.0.0.1
            first_valid_uid = 1
            ssl = required
            auth_ssl_require_client_cert = yes
            service imap-login {
              inet_listener imap {
                port = 0
              }
              inet_listener imaps {
                port = {{Port}}
                ssl = yes
              }
            }

            """);
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start("unshare", Files, [.. WithItsProcesses, Program, "-F", "-c", Configuration]);
        await server.ErrorsContain("starting up for imap");
        return server;
    }

    private string Configuration => Path.Combine(Files, "dovecot.conf");

    private string Version24(string mail) => $$"""
        dovecot_config_version = 2.4.0
        dovecot_storage_version = 2.4.0
        mail_driver = maildir
        mail_path = {{mail}}/%{user}
        ssl_server_cert_file = {{Certificate}}
        ssl_server_key_file = {{Key}}
        ssl_server_ca_file = {{Authority}}
        ssl_server_require_crl = no
        ssl_server_request_client_cert = yes
        passdb static {
          password = {{Password}}
        }
        userdb static {
          fields {
            uid = {{Owner}}
            gid = {{Owner}}
            home = {{mail}}
          }
        }
        """;

    private string Version23(string mail) => $$"""
        mail_location = maildir:{{mail}}/%u
        ssl_cert = <{{Certificate}}
        ssl_key = <{{Key}}
        ssl_ca = <{{Authority}}
        ssl_require_crl = no
        ssl_verify_client_cert = yes
        passdb {
          driver = static
          args = password={{Password}}
        }
        userdb {
          driver = static
          args = uid={{Owner}} gid={{Owner}} home={{mail}}
        }
        """;
}
