using Microsoft.Build.Framework;

namespace KernelTls.Weave;

/// <summary>The assemblies that a project names: its items KernelTlsWeave.</summary>
internal sealed class Selection
{
    /// <summary>The name that selects every assembly of every package.</summary>
    public const string All = "All";

    private readonly HashSet<string> _names = new(StringComparer.OrdinalIgnoreCase);
    private readonly HashSet<string> _excepted = new(StringComparer.OrdinalIgnoreCase);

    public Selection(IEnumerable<ITaskItem> items)
    {
        foreach (ITaskItem item in items)
        {
            _names.Add(item.ItemSpec);
            _excepted.UnionWith(item.GetMetadata("Except").Split(';', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries));
        }

        HasAll = _names.Remove(All);
    }

    /// <summary>Gets a value that indicates whether every assembly is selected, apart from the exceptions.</summary>
    public bool HasAll { get; }

    /// <summary>Gets all names in the items, including those of exceptions.</summary>
    public IEnumerable<string> Named => _names.Concat(_excepted);

    /// <summary>Returns whether an assembly is selected by its own name.</summary>
    public bool Names(string assembly) => _names.Contains(assembly);

    /// <summary>Returns whether an assembly of a package must be woven. The library itself never is.</summary>
    public bool Includes(string assembly) => Names(assembly) || (HasAll && !_excepted.Contains(assembly) && !IsOwn(assembly));

    /// <summary>Returns whether an assembly is the library, or of another of its packages.</summary>
    public static bool IsOwn(string assembly) =>
        assembly == Replacements.Library || assembly.StartsWith(Replacements.Library + ".", StringComparison.Ordinal);
}
