using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Represents the result of a fault as comparable words.</summary>
/// <param name="Delivered">The number of bytes of the peer's data that the application received in order.</param>
/// <param name="Ending">How reading ended: one of the constants, or the exception.</param>
/// <param name="Alert">The alerts sent to the peer, except close_notify, or an empty string.</param>
/// <param name="Write">The result of a write, if reading did not fail: <see cref="Works"/>, or the exception.</param>
internal sealed record FaultOutcome(long Delivered, string Ending, string Alert, string Write)
{
    /// <summary>All data arrived, and the connection can be used further.</summary>
    public const string All = "all data";

    /// <summary>The end of the stream, as after a close_notify.</summary>
    public const string End = "end of stream";

    /// <summary>Some data has not arrived, and nothing more happens.</summary>
    public const string Waits = "waits";

    public const string Works = "works";

    public bool Failed => Ending is not (All or End or Waits);

    /// <summary>Returns the name of the public exception type, with the socket error.</summary>
    public static string Name(Exception failure)
    {
        for (Exception? e = failure; e is not null; e = e.InnerException)
        {
            if (e is SocketException socket)
            {
                return $"{failure.GetType().Name} ({socket.SocketErrorCode})";
            }
        }

        return failure.GetType().Name;
    }

    public override string ToString() => $"{Ending} after {Delivered} bytes, alert '{Alert}', write '{Write}'";
}
