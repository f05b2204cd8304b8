using System.Net.Sockets;

namespace KernelTls.FunctionalTests;

/// <summary>Reads and sets TLS_RX_EXPECT_NO_PAD.</summary>
internal static class NoPadding
{
    private const int SolTls = 282;
    private const int ExpectNoPad = 4;

    /// <summary>Sets the option.</summary>
    public static void Expect(Socket socket) => socket.SetRawSocketOption(SolTls, ExpectNoPad, BitConverter.GetBytes(1));

    /// <summary>
    /// Returns whether the option is set. A socket whose receiving keys are not in the kernel refuses the query.
    /// </summary>
    public static bool IsExpected(Socket socket)
    {
        byte[] value = new byte[sizeof(int)];
        try
        {
            return socket.GetRawSocketOption(SolTls, ExpectNoPad, value) == value.Length && BitConverter.ToInt32(value) == 1;
        }
        catch (SocketException)
        {
            return false;
        }
    }
}
