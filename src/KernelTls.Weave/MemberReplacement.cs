using System.Reflection.Metadata;

namespace KernelTls.Weave;

/// <summary>The replacement of one member.</summary>
/// <param name="Type">The type that declares the member.</param>
/// <param name="Name">The name of the member.</param>
/// <param name="Constructor">The method that replaces a constructor called by <c>new</c>, or null.</param>
/// <param name="IsReplacedByStatic">Whether a static method replaces the member.</param>
/// <param name="BaseClass">The class that replaces the type as a base class, or null.</param>
internal sealed record MemberReplacement(
    TypeReferenceHandle Type, string Name, string? Constructor, bool IsReplacedByStatic, string? BaseClass);
