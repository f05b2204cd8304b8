using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>
/// Represents the result at one end: how the handshake failed, or the result of exchanging one byte each way.
/// </summary>
internal sealed record Ending(Exception? Handshake, Exception? Data)
{
    public bool IsGood => Handshake is null && Data is null;

    public Exception? Failure => Handshake ?? Data;

    /// <summary>
    /// Returns the result as comparable text that contains public exception types only. Failures after the handshake
    /// may differ on purpose (end of stream or IOException), so they are one word.
    /// </summary>
    public override string ToString() =>
        Handshake is not null ? $"handshake: {Shape(Handshake)}"
        : Data is not null ? $"data: {(Data is IOException ? nameof(IOException) : Shape(Data))}"
        : "good";

    /// <summary>Asserts that this end accepted its peer, or failed its handshake because it refused the peer.</summary>
    /// <param name="accepted">Which of them.</param>
    public void AssertAccepted(bool accepted)
    {
        if (accepted)
        {
            AssertGood();
        }
        else
        {
            Assert.IsType<System.Security.Authentication.AuthenticationException>(Handshake);
        }
    }

    public void AssertGood() => Assert.True(IsGood, $"{Failure}");

    private static string Shape(Exception e)
    {
        string shape = e is SocketException socket ? $"{nameof(SocketException)} {socket.SocketErrorCode}" : e.GetType().Name;

        // The inner exceptions that SslStream uses for OpenSSL's errors are internal.
        return e.InnerException is { } inner && inner.GetType().IsPublic && inner is not System.Security.Cryptography.CryptographicException
            ? $"{shape} < {Shape(inner)}"
            : shape;
    }
}
