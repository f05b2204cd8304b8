using System.Net.Security;
using System.Reflection;

namespace KernelTls.Tests;

/// <summary>Makes and uses the streams of a copy of the library (<see cref="HidingContext"/>), whose types are not those that tests refer to.</summary>
internal static class AlteredStream
{
    /// <summary>Returns a KtlsStream of the copy, with OpenSSL on the socket where kernel TLS is not available.</summary>
    public static SslStream Create(Assembly library, Stream inner)
    {
        object options = Activator.CreateInstance(Named(typeof(KtlsOptions)))!;
        Set(nameof(KtlsOptions.Mode), KtlsMode.Preferred);
        Set(nameof(KtlsOptions.Fallback), KtlsFallback.OpenSsl);
        return (SslStream)Activator.CreateInstance(Named(typeof(KtlsStream)), inner, false, options)!;

        Type Named(Type type) => library.GetType(type.FullName!, throwOnError: true)!;

        void Set(string property, Enum value)
        {
            PropertyInfo of = options.GetType().GetProperty(property)!;
            of.SetValue(options, Enum.Parse(of.PropertyType, $"{value}"));
        }
    }

    public static Task AuthenticateAsync(SslStream stream, SslClientAuthenticationOptions options) =>
        AuthenticateAsync(stream, nameof(SslStream.AuthenticateAsClientAsync), options);

    public static Task AuthenticateAsync(SslStream stream, SslServerAuthenticationOptions options) =>
        AuthenticateAsync(stream, nameof(SslStream.AuthenticateAsServerAsync), options);

    /// <summary>Returns a property of the stream's <see cref="KtlsOffload"/> as text.</summary>
    public static string OffloadOf(SslStream stream, string property) =>
        Get(stream.GetType().GetProperty(nameof(KtlsStream.Offload))!.GetValue(stream)!, property);

    /// <summary>Returns a property as text.</summary>
    public static string Get(object from, string property) => $"{from.GetType().GetProperty(property)!.GetValue(from)}";

    private static Task AuthenticateAsync(SslStream stream, string method, object options) =>
        (Task)stream.GetType().GetMethod(method, [options.GetType(), typeof(CancellationToken)])!.Invoke(stream, [options, CancellationToken.None])!;
}
