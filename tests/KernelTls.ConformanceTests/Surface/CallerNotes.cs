using System.Net.Security;
using System.Reflection;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Creates callbacks that note their arguments and what the stream shows while they run.</summary>
internal sealed class CallerNotes(Surface surface, SslStream stream)
{
    /// <summary>Returns a validation callback with a result, or one that accepts what has no errors.</summary>
    public RemoteCertificateValidationCallback Validation(bool? result = null) => (sender, certificate, chain, errors) =>
    {
        Note("RemoteCertificateValidationCallback", sender);
        Add("RemoteCertificateValidationCallback", ("certificate", certificate), ("errors", errors));
        if (chain is null)
        {
            Add("RemoteCertificateValidationCallback", ("chain", null));
        }

        foreach (PropertyInfo property in chain is null ? [] : typeof(X509Chain).GetProperties())
        {
            string member = $"in RemoteCertificateValidationCallback: chain.{property.Name}";
            if (property.Name == nameof(X509Chain.ChainPolicy))
            {
                foreach (PropertyInfo part in typeof(X509ChainPolicy).GetProperties())
                {
                    surface.Ask($"{member}.{part.Name}", () => part.GetValue(chain!.ChainPolicy));
                }
            }
            else if (property.Name is not (nameof(X509Chain.ChainContext) or nameof(X509Chain.SafeHandle)))
            {
                surface.Ask(member, () => property.GetValue(chain));
            }
        }

        return result ?? errors == SslPolicyErrors.None;
    };

    public LocalCertificateSelectionCallback Selection(Func<X509Certificate?, X509Certificate?> choose) => (sender, host, own, remote, issuers) =>
    {
        Note("LocalCertificateSelectionCallback", sender);
        Add("LocalCertificateSelectionCallback", ("host", host), ("own", own), ("remote", remote), ("issuers", issuers));
        return choose(remote)!;
    };

    public ServerCertificateSelectionCallback ServerSelection(X509Certificate certificate) => (sender, host) =>
    {
        Note("ServerCertificateSelectionCallback", sender);
        Add("ServerCertificateSelectionCallback", ("host", host));
        return certificate;
    };

    public ServerOptionsSelectionCallback Options(SslServerAuthenticationOptions options) => (sender, hello, state, _) =>
    {
        Note("ServerOptionsSelectionCallback", sender);
        Add("ServerOptionsSelectionCallback", ("host", hello.ServerName), ("protocols", hello.SslProtocols), ("state", state));
        return ValueTask.FromResult(options);
    };

    private void Note(string callback, object sender)
    {
        Assert.Same(stream, sender);
        CallerMembers.Read(surface, $"in {callback}", stream);
    }

    private void Add(string callback, params (string Name, object? Value)[] arguments)
    {
        foreach ((string name, object? value) in arguments)
        {
            surface.Add($"in {callback}: {name}", SurfaceText.Of(value));
        }
    }
}
