using Microsoft.Extensions.Logging;

namespace KernelTls.Soak;

/// <summary>Receives a server's log and records errors as findings.</summary>
internal sealed class FailureLog(Findings findings) : ILoggerProvider, ILogger
{
    public ILogger CreateLogger(string categoryName) => this;

    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    public bool IsEnabled(LogLevel logLevel) => logLevel >= LogLevel.Error;

    public void Log<TState>(
        LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
    {
        // An exception of the application after its client disconnected is not a failure of the server. Neither is
        // Kestrel's message, with any stream, about a body that it cannot drain because its client disconnected during
        // a read.
        if (IsEnabled(logLevel) && eventId.Name != "RequestBodyDrainBodyReaderInvalidState"
            && exception is not (OperationCanceledException or IOException))
        {
            findings.Add(
                exception is InvalidDataException ? Finding.Corruption : Finding.Failure,
                $"the server's log: {formatter(state, exception)} {exception}");
        }
    }

    public void Dispose()
    {
    }
}
