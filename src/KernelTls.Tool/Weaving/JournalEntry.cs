namespace KernelTls.Tool.Weaving;

/// <summary>A file that weaving changes or adds.</summary>
/// <param name="Path">The path in the folder.</param>
/// <param name="IsAdded">Whether the folder did not have it.</param>
/// <param name="Hash">The hash of the new contents.</param>
/// <param name="Replaces">The hash of the contents that they replace, or null if there are none.</param>
internal sealed record JournalEntry(string Path, bool IsAdded, string Hash, string? Replaces);
