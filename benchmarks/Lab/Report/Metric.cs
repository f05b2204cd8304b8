namespace KernelTls.Lab.Report;

/// <summary>What a figure is: crank's metadata of a measurement.</summary>
/// <param name="Name">As in crank's results.</param>
/// <param name="Aggregate">Of one job's measurements.</param>
/// <param name="Reduce">Of several jobs' aggregates.</param>
/// <param name="ShortDescription">With its unit; the heading in tables.</param>
/// <param name="LongDescription">A sentence.</param>
/// <param name="Format">A .NET format; empty for text.</param>
internal sealed record Metric(
    string Name, Operation Aggregate, Operation Reduce, string ShortDescription, string LongDescription, string Format);
