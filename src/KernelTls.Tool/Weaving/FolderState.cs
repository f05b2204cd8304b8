namespace KernelTls.Tool.Weaving;

/// <summary>What is being done to a folder.</summary>
internal enum FolderState
{
    /// <summary>Files are replaced. If it was interrupted, the next run completes it, or takes it back.</summary>
    Weaving,

    /// <summary>Nothing: the folder is woven.</summary>
    Woven,

    /// <summary>Files are restored. If it was interrupted, the next run completes it.</summary>
    Restoring,
}
