namespace KernelTls.Diagnostics;

/// <summary>Contains a line of the status of a process, as <c>ktls info --process</c> shows it.</summary>
/// <param name="What">The kind of line: switch, platform, endpoint, connections, fallback or stock.</param>
/// <param name="Subject">The switch, endpoint or assembly that the line describes; may be empty.</param>
/// <param name="State">What is on, or the reason why it is not.</param>
/// <param name="Detail">More about it: the role, the stream, the remedy; may be empty.</param>
internal sealed record StatusEntry(string What, string Subject, string State, string Detail)
{
    /// <summary>Returns the line for a log.</summary>
    public override string ToString() =>
        $"{What}{(Subject.Length == 0 ? "" : $" {Subject}")}: {State}{(State.Length == 0 || Detail.Length == 0 ? "" : ". ")}{Detail}";
}
