namespace KernelTls.Tool.Weaving;

/// <summary>New contents of a file.</summary>
/// <param name="Path">The path in the folder.</param>
/// <param name="Content">The contents.</param>
internal sealed record FileChange(string Path, byte[] Content);
