// Opens a connection to PostgreSQL on the port in its argument, knows nothing of kernel TLS, and prints what became of it; without an
// argument nothing but that it runs.
using System.Diagnostics.Tracing;
using Npgsql;

using Listener listener = new();
Console.WriteLine($"Npgsql {typeof(NpgsqlConnection).Assembly.GetName().Version}");
if (args.Length > 0)
{
    try
    {
        await using NpgsqlConnection connection = new(
            $"Host=127.0.0.1;Port={args[0]};Username=u;Password=p;SSL Mode=Require;Timeout=30;GSS Encryption Mode=Disable");
        await connection.OpenAsync();
    }
    catch (PostgresException e)
    {
        Console.WriteLine($"the server says: {e.MessageText}");
    }
}

internal sealed class Listener : EventListener
{
    protected override void OnEventSourceCreated(EventSource source)
    {
        if (source.Name == "KernelTls")
        {
            EnableEvents(source, EventLevel.Informational);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs e)
    {
        if (e.EventName is "HandshakeCompleted" or "Fallback")
        {
            Console.WriteLine($"{e.EventName}: {string.Join(' ', e.Payload!.Skip(e.EventName == "Fallback" ? 1 : 3)).Trim()}");
        }
    }
}
