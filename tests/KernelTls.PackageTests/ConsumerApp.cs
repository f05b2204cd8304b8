namespace KernelTls.PackageTests;

/// <summary>
/// Describes a user's project: a template of <c>dotnet new</c>, a package, and optionally a program that replaces the
/// template's.
/// </summary>
/// <param name="Name">The name of the project.</param>
/// <param name="Template">The template for <c>dotnet new</c>.</param>
/// <param name="Package">The packages for <c>dotnet add package</c>, with spaces between them, or null if the library references it.</param>
/// <param name="Library">The library for <c>dotnet add reference</c>, or null.</param>
/// <param name="Program">The program in Apps, or null to leave the template unchanged.</param>
/// <param name="Woven">The package with a library to weave, or null.</param>
public sealed record ConsumerApp(
    string Name, string Template, string? Package, ConsumerApp? Library = null, string? Program = null, string? Woven = null)
{
    public static ConsumerApp Console { get; } = new("console", "console", "KernelTls", Program: "Console.cs");

    public static ConsumerApp Web { get; } = new("web", "web", "KernelTls.AspNetCore");

    /// <summary>Gets a program and a library, neither of which knows about kernel TLS.</summary>
    public static ConsumerApp WithNpgsql { get; } = new("woven", "console", "KernelTls", Program: "Woven.cs", Woven: "Npgsql");

    /// <summary>Gets a reverse proxy: one package serves its server side, the other one its client side.</summary>
    public static ConsumerApp Proxy { get; } =
        new("proxy", "web", "KernelTls.AspNetCore", Program: "Proxy.cs", Woven: "Yarp.ReverseProxy");

    /// <summary>Gets an application that references the package through a library.</summary>
    public static ConsumerApp Clients { get; } =
        new("clients", "web", null, new("library", "classlib", "KernelTls.AspNetCore"), "Clients.cs");

    /// <summary>Gets an application that fails to start, without a package.</summary>
    public static ConsumerApp Plain { get; } = new("plain", "web", null, Program: "Broken.cs");

    /// <summary>Gets the same application, which only references the package.</summary>
    public static ConsumerApp Broken { get; } = new("broken", "web", "KernelTls.AspNetCore", Program: "Broken.cs");

    /// <summary>Gets a worker with a client of IHttpClientFactory, without a package of KernelTls.</summary>
    public static ConsumerApp Worker { get; } = new("unchanged-worker", "worker", "Microsoft.Extensions.Http", Program: "Worker.cs");

    /// <summary>Gets a reverse proxy without a package of KernelTls.</summary>
    public static ConsumerApp Forwarder { get; } = new("unchanged-forwarder", "web", "Yarp.ReverseProxy", Program: "Forwarder.cs");

    /// <summary>Gets a console application whose TLS is stock, without a package of KernelTls.</summary>
    public static ConsumerApp Stock { get; } = new("unchanged-console", "console", null, Program: "Stock.cs");

    /// <summary>Gets a console application without TLS, and without a package of KernelTls.</summary>
    public static ConsumerApp Idle { get; } = new("unchanged-idle", "console", null, Program: "Idle.cs");

    /// <summary>Gets a web application with OpenTelemetry and Application Insights, without a package of KernelTls.</summary>
    public static ConsumerApp Telemetry { get; } = new(
        "unchanged-telemetry",
        "web",
        "OpenTelemetry.Extensions.Hosting OpenTelemetry.Instrumentation.AspNetCore OpenTelemetry.Instrumentation.Http OpenTelemetry.Exporter.Console Microsoft.ApplicationInsights.AspNetCore",
        Program: "Telemetry.cs");

    /// <summary>Gets a web application on the slim builder, without a package of KernelTls.</summary>
    public static ConsumerApp Slim { get; } = new("unchanged-slim", "web", null, Program: "Slim.cs");

    /// <summary>Gets a web application that another thread builds while .NET loads its TLS, without a package of KernelTls.</summary>
    public static ConsumerApp Race { get; } = new("unchanged-race", "web", null, Program: "Race.cs");

    /// <summary>Gets a start-up hook that is not ours.</summary>
    public static ConsumerApp OtherHook { get; } = new("other-hook", "classlib", null, Program: "OtherHook.cs");

    /// <summary>Returns an application that is what a template of <c>dotnet new</c> makes.</summary>
    public static ConsumerApp Unchanged(string template) => new($"unchanged-{template}", template, null);
}
