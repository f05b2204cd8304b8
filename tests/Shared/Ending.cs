using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>What one end came to: how the handshake failed or, after one that did not, the exchange of a byte each way.</summary>
internal sealed record Ending(Exception? Handshake, Exception? Data)
{
    public bool IsGood => Handshake is null && Data is null;

    public Exception? Failure => Handshake ?? Data;

    /// <summary>
    /// As comparable text: types, as far as they are public. How a connection ends after the handshake may differ on purpose
    /// (end of stream or IOException), so that is one word.
    /// </summary>
    public override string ToString() =>
        Handshake is not null ? $"handshake: {Shape(Handshake)}"
        : Data is not null ? $"data: {(Data is IOException ? nameof(IOException) : Shape(Data))}"
        : "good";

    public void AssertGood() => Assert.True(IsGood, $"{Failure}");

    private static string Shape(Exception e)
    {
        string shape = e is SocketException socket ? $"{nameof(SocketException)} {socket.SocketErrorCode}" : e.GetType().Name;

        // What SslStream puts inside of what OpenSSL says is internal to it.
        return e.InnerException is { } inner && inner.GetType().IsPublic && inner is not System.Security.Cryptography.CryptographicException
            ? $"{shape} < {Shape(inner)}"
            : shape;
    }
}
