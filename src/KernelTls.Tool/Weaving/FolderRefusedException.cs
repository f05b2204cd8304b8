namespace KernelTls.Tool.Weaving;

/// <summary>The exception for a folder that is not woven or restored, and stays as it is. The message says why, and what to do.</summary>
internal sealed class FolderRefusedException(string reason) : Exception(reason);
