namespace KernelTls.LoadTest.Report;

/// <summary>Represents the metadata of a figure, in the form of crank's metadata of a measurement.</summary>
/// <param name="Name">The name in crank's results.</param>
/// <param name="Aggregate">The operation that combines the measurements of one job.</param>
/// <param name="Reduce">The operation that combines the aggregates of several jobs.</param>
/// <param name="ShortDescription">The short description with the unit. It is the heading in tables.</param>
/// <param name="LongDescription">The description, which is a sentence.</param>
/// <param name="Format">The .NET format string, or an empty string for text.</param>
internal sealed record Metric(
    string Name, Operation Aggregate, Operation Reduce, string ShortDescription, string LongDescription, string Format);
