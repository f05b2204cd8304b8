using System.Reflection.Metadata;

namespace KernelTls.Weave;

/// <summary>What is to become of uses of a member.</summary>
/// <param name="Type">The type that it is a member of.</param>
/// <param name="Name">Its name.</param>
/// <param name="Constructor">The method that replaces a constructor called by <c>new</c>, or null.</param>
/// <param name="IsReplacedByStatic">Whether a static method replaces it.</param>
/// <param name="BaseClass">The class that replaces its type as a base class; or null.</param>
internal sealed record MemberReplacement(
    TypeReferenceHandle Type, string Name, string? Constructor, bool IsReplacedByStatic, string? BaseClass);
