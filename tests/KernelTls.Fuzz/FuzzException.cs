namespace KernelTls.Fuzz;

/// <summary>The exception that is thrown when a condition does not hold that must hold for every input.</summary>
internal sealed class FuzzException(string message, Exception? inner = null) : Exception(message, inner);
