namespace KernelTls.PackageTests;

/// <summary>A project of a user: what <c>dotnet new</c> makes, a package, and a program where the template's is not kept.</summary>
/// <param name="Name">Its name.</param>
/// <param name="Template">For <c>dotnet new</c>.</param>
/// <param name="Package">For <c>dotnet add package</c>; null: the library has it.</param>
/// <param name="Library">For <c>dotnet add reference</c>, if any.</param>
/// <param name="Program">In Apps; null: not a line is changed.</param>
public sealed record ConsumerApp(string Name, string Template, string? Package, ConsumerApp? Library = null, string? Program = null)
{
    public static ConsumerApp Console { get; } = new("console", "console", "KernelTls", Program: "Console.cs");

    public static ConsumerApp Web { get; } = new("web", "web", "KernelTls.AspNetCore");

    /// <summary>The package comes by way of a library.</summary>
    public static ConsumerApp Clients { get; } =
        new("clients", "web", null, new("library", "classlib", "KernelTls.AspNetCore"), "Clients.cs");
}
