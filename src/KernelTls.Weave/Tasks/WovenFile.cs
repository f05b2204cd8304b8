using System.Text.Json.Serialization;

namespace KernelTls.Weave;

/// <summary>What came of an assembly in this build or an earlier one.</summary>
/// <param name="Input">The path of the assembly.</param>
/// <param name="InputStamp">Which one it was.</param>
/// <param name="Output">Where its woven copy is.</param>
/// <param name="OutputStamp">Which one that is; null if nothing was woven.</param>
/// <param name="Places">What was replaced, and where.</param>
/// <param name="Problems">What should have been replaced and could not be.</param>
/// <param name="Refusal">Why the assembly cannot be woven at all; null if it can.</param>
internal sealed record WovenFile(
    string Input, string InputStamp, string Output, string? OutputStamp, string[] Places, string[] Problems, string? Refusal)
{
    /// <summary>Gets a value that indicates whether the assembly had been woven before any build of this project, and is left as it is.</summary>
    public bool WasWoven { get; init; }

    /// <summary>Gets a value that indicates whether the assembly has no place to weave.</summary>
    [JsonIgnore]
    public bool HasNothing => Refusal is null && !WasWoven && OutputStamp is null && Problems.Length == 0;
}
