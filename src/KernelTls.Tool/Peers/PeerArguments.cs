using System.CommandLine;
using System.CommandLine.Parsing;
using System.Globalization;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Defines the arguments that probe and connect share: the peer and the trusted certificates.</summary>
internal sealed class PeerArguments
{
    private const double LongestSeconds = 3600;
    private static readonly TimeSpan s_standardTimeout = TimeSpan.FromSeconds(10);

    private readonly Argument<PeerAddress?> _address = new("HOST:PORT")
    {
        Description = "The peer.",
        CustomParser = PeerAddress.Parse,
    };

    private readonly Option<string?> _serverName = new("--server-name")
    {
        Description = "The name to request and to expect in the certificate. Default: HOST.",
        HelpName = "NAME",
    };

    private readonly Option<string?> _authority = new("--ca")
    {
        Description = "Trust only the certificates in this PEM file. Default: those that this machine trusts.",
        HelpName = "FILE",
    };

    private readonly Option<bool> _insecure = new("--insecure") { Description = "Continue if the certificate is not trusted." };

    private readonly Option<string?> _version = new("--tls")
    {
        Description = "Offer only this version. Default: 1.2 and 1.3.",
        HelpName = "1.2|1.3",
    };

    private readonly CertificateArguments _certificate;
    private readonly Option<TimeSpan?> _timeout = Seconds("--timeout", s_standardTimeout, "The time limit for the connection, and for the handshake.");

    public PeerArguments(Command command)
    {
        _serverName.Validators.Add(result => Expect(
            result, name => Uri.CheckHostName(name) is UriHostNameType.Dns or UriHostNameType.IPv4, "a host name, such as example.com"));
        _version.Validators.Add(result => Expect(result, version => version is "1.2" or "1.3", "1.2 or 1.3"));
        _authority.Validators.Add(result => Expect(result, File.Exists, "a file with PEM certificates"));
        command.Arguments.Add(_address);
        command.Options.Add(_serverName);
        command.Options.Add(_authority);
        command.Options.Add(_insecure);
        command.Options.Add(_version);
        command.Options.Add(_timeout);
        _certificate = new CertificateArguments(command, "For peers that request one. Default: none.");
    }

    /// <summary>Reads the arguments.</summary>
    /// <exception cref="ToolFailedException">A certificate's file cannot be read or used.</exception>
    public PeerSettings Read(ParseResult arguments)
    {
        PeerAddress address = arguments.GetValue(_address)!;
        return new PeerSettings(
            address,
            arguments.GetValue(_serverName) ?? address.Host,
            arguments.GetValue(_authority) is { } path ? LoadAuthority(path) : null,
            arguments.GetValue(_insecure),
            arguments.GetValue(_version) switch
            {
                "1.2" => SslProtocols.Tls12,
                "1.3" => SslProtocols.Tls13,
                _ => SslProtocols.Tls12 | SslProtocols.Tls13,
            },
            arguments.GetValue(_timeout) ?? s_standardTimeout,
            _certificate.Load(arguments) is { } own ? SslStreamCertificateContext.Create(own.Certificate, own.Chain, offline: true) : null);
    }

    /// <summary>Creates an option in seconds, with fractions, up to an hour.</summary>
    public static Option<TimeSpan?> Seconds(string name, TimeSpan standard, string description) => new(name)
    {
        Description = $"{description} Default: {standard.TotalSeconds}.",
        HelpName = "SECONDS",
        CustomParser = result =>
        {
            if (double.TryParse(result.Tokens[0].Value, CultureInfo.InvariantCulture, out double seconds)
                && seconds is > 0 and <= LongestSeconds)
            {
                return TimeSpan.FromSeconds(seconds);
            }

            result.AddError($"{name} '{result.Tokens[0].Value}': expected a number of seconds above 0, at most {LongestSeconds}.");
            return null;
        },
    };

    /// <summary>Creates an option whose value is a number.</summary>
    public static Option<int?> Number(string name, string helpName, string description, Func<int, bool> isExpected, string expectation) => new(name)
    {
        Description = description,
        HelpName = helpName,
        CustomParser = result =>
        {
            if (int.TryParse(result.Tokens[0].Value, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out int number) && isExpected(number))
            {
                return number;
            }

            result.AddError($"{name} '{result.Tokens[0].Value}': expected {expectation}.");
            return null;
        },
    };

    /// <summary>Validates an option's single value. The error says what was expected.</summary>
    public static void Expect(OptionResult result, Func<string, bool> isExpected, string expectation)
    {
        if (result.Tokens is [{ Value: { } value }] && !isExpected(value))
        {
            result.AddError($"{result.Option.Name} '{value}': expected {expectation}.");
        }
    }

    private static X509Certificate2Collection LoadAuthority(string path)
    {
        X509Certificate2Collection certificates = [];
        try
        {
            certificates.ImportFromPemFile(path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or CryptographicException)
        {
            throw new ToolFailedException(ExitCode.WrongUsage, $"--ca '{path}' cannot be read: {e.Message.TrimEnd('.')}. Expected a file with PEM certificates.", e);
        }

        return certificates.Count > 0
            ? certificates
            : throw new ToolFailedException(ExitCode.WrongUsage, $"--ca '{path}' contains no PEM certificate. Expected those of the authorities to trust.");
    }
}
