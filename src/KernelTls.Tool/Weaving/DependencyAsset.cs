namespace KernelTls.Tool.Weaving;

/// <summary>An assembly that a deps.json lists.</summary>
/// <param name="Path">The path in the package or, for one platform, in the folder.</param>
/// <param name="IsFramework">Whether it is part of .NET, beside a self-contained application.</param>
internal sealed record DependencyAsset(string Path, bool IsFramework);
