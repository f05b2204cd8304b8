using System.Collections;
using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>Formats values as comparable text.</summary>
/// <remarks>
/// Two connections never agree on random numbers, key shares, signatures, tickets, ports, times and identifiers. Their
/// values are left out; that they are there, and their number or length, remains. Certificates are named by subject.
/// </remarks>
internal static class SurfaceText
{
    /// <summary>The value of a member that is not there.</summary>
    public const string Absent = "absent";

    /// <summary>The value of a member that is there, with nothing in it.</summary>
    public const string Empty = "empty";

    /// <summary>Returns the result of a function, or the exception that it throws.</summary>
    public static string Answer(Func<object?> ask)
    {
        try
        {
            return Of(ask());
        }
        catch (TargetInvocationException e)
        {
            return $"throws {Types(e.InnerException!)}";
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return $"throws {Types(e)}";
        }
    }

    /// <summary>
    /// Returns the types of an exception and of its inner ones. An internal type counts as the public one that it derives
    /// from, and is named.
    /// </summary>
    public static string Types(Exception e)
    {
        string type = e is SocketException socket ? $"{nameof(SocketException)} {socket.SocketErrorCode}" : e.GetType().Name;
        return e.InnerException is { } inner ? $"{type} <- {Types(inner)}" : type;
    }

    public static string Of(object? value) => value switch
    {
        null => "null",
        string text => SurfaceHosts.Unify(text),
        Exception e => Types(e),
        X509Certificate certificate => $"{certificate.GetType().Name} {certificate.Subject}",
        X509ChainElement element => $"{element.Certificate.Subject} {Of(element.ChainElementStatus)}",
        X509ChainStatus status => $"{status.Status}",
        Oid oid => $"{oid.Value}",
        ChannelBinding binding => Of(binding),
        IPEndPoint point => $"{point.Address}",
        ReadOnlyMemory<byte> bytes => Convert.ToHexString(bytes.Span),
        IEnumerable all => $"[{string.Join(", ", all.Cast<object?>().Select(Of))}]",
        DateTime or DateTimeOffset => "a time",
        _ => value.GetType().GetMethod(nameof(ToString), [])!.DeclaringType == typeof(object) ? "present" : $"{value}",
    };

    /// <summary>
    /// Returns a binding: the subject of the certificate to which it binds, or the length of one to the connection (RFC 5929).
    /// </summary>
    private static string Of(ChannelBinding binding)
    {
        byte[] bytes = new byte[binding.Size];
        Marshal.Copy(binding.DangerousGetHandle(), bytes, 0, bytes.Length);
        X509Certificate2? certificate = new[] { Certificates.Ecdsa, Certificates.Client, Certificates.Kind("wildcard"), Certificates.ChainedContext.TargetCertificate }
            .FirstOrDefault(c => bytes.AsSpan().EndsWith(SHA256.HashData(c.RawData)));
        return certificate is null ? $"{bytes.Length} bytes" : $"the hash of {certificate.Subject}";
    }
}
