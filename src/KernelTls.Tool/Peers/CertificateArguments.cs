using System.CommandLine;

namespace KernelTls.Tool.Peers;

/// <summary>Defines the options for this end's certificate, which probe, connect and serve share.</summary>
internal sealed class CertificateArguments
{
    private readonly Option<string?> _certificate;

    private readonly Option<string?> _key = new("--key")
    {
        Description = "The PEM file with the certificate's private key. Default: the key is in the file of the certificate.",
        HelpName = "FILE",
    };

    private readonly Option<string?> _password = new("--password-file")
    {
        Description = "The file whose first line is the password of the key, or of the PKCS #12 file.",
        HelpName = "FILE",
    };

    /// <summary>Adds the options to a command.</summary>
    /// <param name="command">The command.</param>
    /// <param name="purpose">What the certificate is for and what applies without one.</param>
    public CertificateArguments(Command command, string purpose)
    {
        _certificate = new("--certificate")
        {
            Description = $"A PEM file with the certificate and its intermediates, or a PKCS #12 file (.pfx, .p12). {purpose}",
            HelpName = "FILE",
        };
        command.Options.Add(_certificate);
        command.Options.Add(_key);
        command.Options.Add(_password);
        command.Validators.Add(result =>
        {
            if (result.GetResult(_certificate) is null)
            {
                foreach (Option<string?> option in new[] { _key, _password }.Where(o => result.GetResult(o) is not null))
                {
                    result.AddError($"{option.Name} '{result.GetValue(option)}': expected --certificate too.");
                }
            }
        });
    }

    /// <summary>Loads the certificate, or returns <see langword="null"/> if none was given.</summary>
    /// <exception cref="ToolFailedException">A file cannot be read or used.</exception>
    public OwnCertificate? Load(ParseResult arguments) => arguments.GetValue(_certificate) is { } path
        ? OwnCertificate.Load(path, arguments.GetValue(_key), arguments.GetValue(_password))
        : null;
}
