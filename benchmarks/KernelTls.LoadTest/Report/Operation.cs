namespace KernelTls.LoadTest.Report;

/// <summary>Specifies how crank combines many figures into one. The names are defined by crank.</summary>
internal enum Operation
{
    First,
    Last,
    Avg,
    Sum,
    Max,
    Min,
}
