using System.Text.Json.Serialization;

namespace KernelTls.Tool.Weaving;

/// <summary>The result for one assembly.</summary>
/// <param name="Path">The path in the folder.</param>
/// <param name="Places">What is replaced, and where.</param>
/// <param name="Problems">What cannot be replaced, and stays with SslStream.</param>
/// <param name="AddsStartup">Whether it gets the attribute with the start-up class of KernelTls.AspNetCore.</param>
/// <param name="RemovesNativeCode">Whether its native code (ReadyToRun) is removed.</param>
/// <param name="WasWoven">Whether it was woven before.</param>
internal sealed record WovenAssembly(
    string Path, IReadOnlyList<string> Places, IReadOnlyList<string> Problems, bool AddsStartup, bool RemovesNativeCode, bool WasWoven)
{
    /// <summary>Gets the new contents, or null if it stays as it is.</summary>
    [JsonIgnore]
    public byte[]? Image { get; init; }

    /// <summary>Gets the reason why it cannot be woven, or null.</summary>
    [JsonIgnore]
    public string? Refusal { get; init; }
}
