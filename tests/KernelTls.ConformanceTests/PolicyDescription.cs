using System.Collections;
using System.Reflection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Describes an X509ChainPolicy member by member. Reflection finds the members, so that a member of a later runtime is
/// described too.
/// </summary>
internal static class PolicyDescription
{
    public static string Of(X509ChainPolicy policy) => string.Join('\n', typeof(X509ChainPolicy)
        .GetProperties(BindingFlags.Public | BindingFlags.Instance)
        .OrderBy(p => p.Name, StringComparer.Ordinal)
        .Select(p => $"{p.Name}: {Text(p.GetValue(policy), policy)}"));

    private static string Text(object? value, X509ChainPolicy policy) => value switch
    {
        null => "null",
        string text => text,

        // A policy that ignores its time returns the current one.
        DateTime time => policy.VerificationTimeIgnored ? $"a time of kind {time.Kind}" : $"{time:O}",
        X509Certificate2 certificate => $"{certificate.Subject} {certificate.Thumbprint}",
        Oid oid => $"{oid.Value} '{oid.FriendlyName}'",
        IEnumerable items => $"[{string.Join(", ", items.Cast<object?>().Select(i => Text(i, policy)))}]",
        _ => $"{value}",
    };
}
