using KernelTls.Offload;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Reports that the application lacks the assembly KernelTls, or has one that cannot be loaded.</summary>
/// <remarks>It uses constants of that assembly alone, which the compiler has copied.</remarks>
internal sealed class MissingAssembly(ILogger<KernelTlsHostingStartup> logger, Exception failure) : IHostedService
{
    private const string Name = "KernelTls";

    // Not in LogMessages, whose initializer needs types of the assembly.
    private static readonly Action<ILogger, string, Exception?> s_missing = LoggerMessage.Define<string>(
        LogLevel.Warning,
        new EventId(20, nameof(MissingAssembly)),
        "Kernel TLS is not available, because the assembly KernelTls cannot be loaded. HTTPS endpoints use the default SslStream-based TLS. {Detail}");

    /// <summary>Returns whether the exception means that the assembly cannot be loaded.</summary>
    public static bool IsCauseOf(Exception exception) =>
        exception is FileNotFoundException { FileName: { } missing } && IsName(missing)
        || exception is FileLoadException { FileName: { } refused } && IsName(refused)
        || exception is BadImageFormatException { FileName: { } damaged } && IsName(damaged);

    /// <summary>Has the host log this at its start, if the operator has set one of the variables.</summary>
    public static void Report(IServiceCollection services, Exception failure)
    {
        if (IsSet(Toggles.KernelVariable) || IsSet(Toggles.DirectVariable))
        {
            services.AddHostedService(s => new MissingAssembly(s.GetRequiredService<ILogger<KernelTlsHostingStartup>>(), failure));
        }
    }

    public Task StartAsync(CancellationToken cancellationToken)
    {
        s_missing(logger, failure.Message.Trim(), null);
        return Task.CompletedTask;
    }

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    private static bool IsName(string file) =>
        file == Name || file.StartsWith($"{Name},", StringComparison.Ordinal) || Path.GetFileNameWithoutExtension(file) == Name;

    private static bool IsSet(string variable) => Environment.GetEnvironmentVariable(variable) is not (null or "" or "0");
}
