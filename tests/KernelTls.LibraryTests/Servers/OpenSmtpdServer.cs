using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents OpenSMTPD, which accepts mail for every account.</summary>
public sealed class OpenSmtpdServer() : Server("smtpd")
{
    public const string Recipient = "nobody@localhost";

    protected override async Task PrepareAsync()
    {
        File.WriteAllText(Configuration, $"""
            pki test cert "{Certificate}"
            pki test key "{Key}"
            smtp max-message-size 64M
            listen on 127.0.0.1 port {Port} smtps pki test
            action "drop" mda "cat > /dev/null"
            match from any for any action "drop"

            """);
        await RunAsync("chmod", "600", Key, Configuration);
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(Program, Files, "-d", "-v", "-f", Configuration);
        await server.ErrorsContain("smtp: will accept at most");
        return server;
    }

    private string Configuration => Path.Combine(Files, "smtpd.conf");
}
