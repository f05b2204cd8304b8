namespace KernelTls.Diagnostics;

/// <summary>Represents what <see cref="ProcessStatus"/> collects: equal values are one kind.</summary>
internal interface IProcessKind
{
    /// <summary>Returns the kind in words.</summary>
    StatusEntry Describe();
}
