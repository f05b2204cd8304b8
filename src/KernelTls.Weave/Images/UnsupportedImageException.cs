namespace KernelTls.Weave.Images;

/// <summary>An assembly that cannot be rewritten. The message is a clause that says why, for a build warning.</summary>
internal sealed class UnsupportedImageException(string reason) : Exception(reason);
