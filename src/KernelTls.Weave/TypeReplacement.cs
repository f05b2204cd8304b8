namespace KernelTls.Weave;

/// <summary>The replacements for one type's members.</summary>
internal sealed class TypeReplacement
{
    /// <summary>Gets the methods that replace constructors, by the text of their parameters.</summary>
    public Dictionary<string, string> Constructors { get; } = [];

    /// <summary>Gets the members that a static method of the same name replaces: names, with the text of their parameters.</summary>
    public HashSet<string> Members { get; } = [];

    /// <summary>Gets or sets the generic class that replaces the type as a base class, or null.</summary>
    public string? BaseClass { get; set; }
}
