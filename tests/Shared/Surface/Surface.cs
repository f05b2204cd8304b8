namespace KernelTls.Tests;

/// <summary>
/// Represents what one side shows, as members with comparable values, in the order in which they were seen. Thread-safe.
/// </summary>
internal sealed class Surface
{
    private readonly Lock _lock = new();
    private readonly List<string> _order = [];
    private readonly Dictionary<string, string> _values = new(StringComparer.Ordinal);

    /// <summary>Gets the members in the order in which they were seen.</summary>
    public IReadOnlyList<string> Members
    {
        get
        {
            lock (_lock)
            {
                return [.. _order];
            }
        }
    }

    /// <summary>Adds a member. One that is seen again has all its values in order.</summary>
    public void Add(string member, string value)
    {
        value = value.Length == 0 ? SurfaceText.Empty : value;
        lock (_lock)
        {
            if (_values.TryGetValue(member, out string? before))
            {
                _values[member] = $"{before}; {value}";
            }
            else
            {
                _values.Add(member, value);
                _order.Add(member);
            }
        }
    }

    /// <summary>Adds the result of a function, which may be an exception.</summary>
    public void Ask(string member, Func<object?> ask) => Add(member, SurfaceText.Answer(ask));

    /// <summary>Returns the value of a member, or <see cref="SurfaceText.Absent"/>.</summary>
    public string ValueOf(string member)
    {
        lock (_lock)
        {
            return _values.GetValueOrDefault(member, SurfaceText.Absent);
        }
    }
}
