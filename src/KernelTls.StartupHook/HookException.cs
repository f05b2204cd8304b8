/// <summary>The exception that says why the bundle does not reach the application.</summary>
internal sealed class HookException(string message) : Exception(message);
