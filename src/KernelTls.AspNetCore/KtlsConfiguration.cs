using System.Globalization;
using Microsoft.Extensions.Configuration;

namespace KernelTls.AspNetCore;

/// <summary>Reads <see cref="KtlsOptions"/> from the configuration: the section KernelTls of the host, and that of an endpoint.</summary>
internal static class KtlsConfiguration
{
    /// <summary>The key of the host's section, and of the one in <c>Kestrel:Endpoints:NAME</c>.</summary>
    public const string Key = "KernelTls";

    private delegate void Setter(KtlsOptions options, IConfigurationSection value);

    private static readonly SortedDictionary<string, Setter> s_setters = new(StringComparer.OrdinalIgnoreCase)
    {
        [nameof(KtlsOptions.Mode)] = static (o, v) => o.Mode = Name<KtlsMode>(v),
        [nameof(KtlsOptions.Fallback)] = static (o, v) => o.Fallback = Name<KtlsFallback>(v),
        [nameof(KtlsOptions.Directions)] = static (o, v) => o.Directions = Name<KtlsDirections>(v),
        [nameof(KtlsOptions.RecordLimit)] = static (o, v) => o.RecordLimit = Number(v),
        [nameof(KtlsOptions.ExpectNoPadding)] = static (o, v) => o.ExpectNoPadding = Name<KtlsExpectNoPadding>(v),
        [nameof(KtlsOptions.ZeroCopySendFile)] = static (o, v) => o.ZeroCopySendFile = Bool(v),
        [nameof(KtlsOptions.RequireCloseNotify)] = static (o, v) => o.RequireCloseNotify = Bool(v),
    };

    /// <summary>Returns whether the configuration has options for the host, or for one of Kestrel's endpoints.</summary>
    public static bool IsIn(IConfiguration configuration) =>
        configuration.GetSection(Key).Exists() || Endpoints(configuration.GetSection("Kestrel")).Any();

    /// <summary>Returns the sections of those endpoints of Kestrel's section that have options.</summary>
    public static IEnumerable<IConfigurationSection> Endpoints(IConfiguration kestrel) =>
        kestrel.GetSection("Endpoints").GetChildren().Select(e => e.GetSection(Key)).Where(s => s.Exists());

    /// <summary>Changes the options that the host's section names.</summary>
    /// <inheritdoc cref="Bind" path="/exception"/>
    public static void BindHost(KtlsOptions options, IConfiguration configuration) => Bind(configuration.GetSection(Key), options);

    /// <summary>Changes the options that the section names.</summary>
    /// <exception cref="InvalidOperationException">
    /// A key or a value is wrong. The message names the key, and the keys or values that are allowed.
    /// </exception>
    public static void Bind(IConfigurationSection section, KtlsOptions options)
    {
        if (section.Value is { } value)
        {
            throw new InvalidOperationException($"{section.Path} is '{value}'. Expected a section with one of the keys {Keys()}.");
        }

        foreach (IConfigurationSection child in section.GetChildren())
        {
            if (!s_setters.TryGetValue(child.Key, out Setter? set))
            {
                throw new InvalidOperationException($"{child.Path} is not known. Expected one of the keys {Keys()}.");
            }

            set(options, child);
        }
    }

    private static string Keys() => string.Join(", ", s_setters.Keys);

    private static T Name<T>(IConfigurationSection section)
        where T : struct, Enum =>
        section.Value is { } text && !text.AsSpan().ContainsAnyInRange('0', '9') && Enum.TryParse(text, ignoreCase: true, out T value)
            ? value
            : throw Wrong(section, string.Join(", ", Enum.GetNames<T>()));

    private static bool Bool(IConfigurationSection section) =>
        bool.TryParse(section.Value, out bool value) ? value : throw Wrong(section, "true or false");

    private static long Number(IConfigurationSection section) =>
        long.TryParse(section.Value, NumberStyles.None, CultureInfo.InvariantCulture, out long value) && value > 0
            ? value
            : throw Wrong(section, "a number of records, 1 or more");

    private static InvalidOperationException Wrong(IConfigurationSection section, string expected) =>
        new($"{section.Path} is '{section.Value}'. Expected {expected}.");
}
