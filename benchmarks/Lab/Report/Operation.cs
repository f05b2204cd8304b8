namespace KernelTls.Lab.Report;

/// <summary>How crank makes one figure of many; its own names.</summary>
internal enum Operation
{
    First,
    Last,
    Avg,
    Sum,
    Max,
    Min,
}
