namespace KernelTls.Weave;

/// <summary>What came of an assembly.</summary>
/// <param name="Image">The woven assembly; null if there was nothing to weave.</param>
/// <param name="Places">What was replaced, and where.</param>
/// <param name="Problems">What should have been replaced and could not be.</param>
internal sealed record WeaveResult(byte[]? Image, IReadOnlyList<string> Places, IReadOnlyList<string> Problems)
{
    /// <summary>Gets a value that indicates whether the assembly had been woven before, and is left as it is.</summary>
    public bool WasWoven { get; init; }
}
