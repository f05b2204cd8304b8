using System.Text.Json.Serialization;

namespace KernelTls.Weave;

/// <summary>The cached result for one input file.</summary>
/// <param name="Input">The path of the assembly.</param>
/// <param name="InputStamp">The size and time of the input when it was woven.</param>
/// <param name="Output">The path of the woven copy.</param>
/// <param name="OutputStamp">The size and time of the woven copy; null if nothing was woven.</param>
/// <param name="Places">The members that were replaced, with their places.</param>
/// <param name="Problems">The members that could not be replaced, with the reasons.</param>
/// <param name="Refusal">The reason why the assembly cannot be woven; null if it can.</param>
internal sealed record WovenFile(
    string Input, string InputStamp, string Output, string? OutputStamp, string[] Places, string[] Problems, string? Refusal)
{
    /// <summary>Gets a value that indicates whether the assembly had been woven before any build of this project and was not changed.</summary>
    public bool WasWoven { get; init; }

    /// <summary>Gets a value that indicates whether the assembly has no place to weave.</summary>
    [JsonIgnore]
    public bool HasNothing => Refusal is null && !WasWoven && OutputStamp is null && Problems.Length == 0;
}
