namespace KernelTls.Weave.Images;

/// <summary>The exception that is thrown for an assembly that cannot be rewritten. The message is a clause for a build warning.</summary>
internal sealed class UnsupportedImageException(string reason) : Exception(reason);
