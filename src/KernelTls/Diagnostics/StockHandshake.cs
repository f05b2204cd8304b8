namespace KernelTls.Diagnostics;

/// <summary>Describes a kind of handshake of an SslStream that this library did not create.</summary>
/// <param name="IsServer">Whether this end is the server.</param>
/// <param name="TargetHost">The server's name as given by the client; empty for a server.</param>
/// <param name="Assembly">
/// The name of the assembly that started the handshake; empty if the stack does not show it.
/// </param>
/// <param name="Caller">The type that started the handshake, by its full name; empty if the stack does not show it.</param>
/// <param name="Origin">
/// The name of the assembly that called the framework's assembly; empty if <paramref name="Assembly"/> is none of the framework, or if the
/// stack does not show it.
/// </param>
internal sealed record StockHandshake(bool IsServer, string TargetHost, string Assembly, string Caller, string Origin) : IProcessKind
{
    public const string HttpClientAssembly = "System.Net.Http";
    public const string KestrelAssembly = "Microsoft.AspNetCore.Server.Kestrel.Core";

    /// <summary>Gets the assembly as the subject of a sentence, with the type and the assembly that called it.</summary>
    public string Maker => (Assembly, Caller, Origin) switch
    {
        ("", _, _) => "An assembly",
        (_, "", "") => Assembly,
        (_, _, "") => $"{Assembly} ({Caller})",
        _ => $"{Assembly} ({Caller}), called by {Origin},",
    };

    /// <summary>Gets advice on how to use kernel TLS for connections of this kind.</summary>
    public string Remedy => Assembly switch
    {
        HttpClientAssembly => "Call UseKernelTls on the SocketsHttpHandler of the HttpClient, take the client from IHttpClientFactory, or "
            + "have the package KernelTls.Weave weave the assembly that makes the client.",
        KestrelAssembly => "The package KernelTls.AspNetCore serves Kestrel's endpoints; WebApplication.CreateSlimBuilder also needs UseKernelTls().",
        "" => "The package KernelTls.Weave weaves libraries; code of your own can use KtlsStream in place of SslStream.",
        _ when IsFramework(Assembly) => "No package reaches TLS inside the framework. A library that KernelTls.Weave weaves may do the same: "
            + "MailKit instead of SmtpClient, FluentFTP instead of FtpWebRequest.",
        _ => $"The package KernelTls.Weave weaves it: <KernelTlsWeave Include=\"{Assembly}\" /> in the project of the application. "
            + "Code of your own can use KtlsStream in place of SslStream.",
    };

    /// <summary>Returns whether an assembly is one of .NET's own.</summary>
    public static bool IsFramework(string assembly) =>
        assembly.StartsWith("System.", StringComparison.Ordinal) || assembly is KestrelAssembly or "mscorlib" or "netstandard";

    /// <inheritdoc/>
    public StatusEntry Describe() => new(
        "stock",
        Assembly,
        "SslStream, not reached by the switch",
        $"{(IsServer ? "server" : $"client of {TargetHost}")}, {Maker.TrimEnd(',')}. {Remedy}");
}
