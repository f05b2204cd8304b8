namespace KernelTls.Weave;

/// <summary>The result of weaving one assembly.</summary>
/// <param name="Image">The woven assembly; null if there was nothing to weave.</param>
/// <param name="Places">The members that were replaced, with their places.</param>
/// <param name="Problems">The members that could not be replaced, with the reasons.</param>
internal sealed record WeaveResult(byte[]? Image, IReadOnlyList<string> Places, IReadOnlyList<string> Problems)
{
    /// <summary>Gets a value that indicates whether the assembly had been woven before and was not changed.</summary>
    public bool WasWoven { get; init; }
}
