using System.Net.Sockets;
using KernelTls.Diagnostics;

namespace KernelTls.IO;

// Options that the kernel takes once it has the keys, or refuses.
internal sealed partial class TlsSession
{
    internal const int LevelTls = 282;       // SOL_TLS
    internal const int ZeroCopyReadOnly = 3; // TLS_TX_ZEROCOPY_RO

    /// <summary>Turns on what <paramref name="options"/> ask for; what is refused is an event, and the connection goes on.</summary>
    public void Apply(KtlsOptions options)
    {
        if (options.ZeroCopySendFile && _offload.Send == KtlsDataPath.Kernel)
        {
            TurnOn(_socket, Settings.IsServer, ZeroCopyReadOnly, nameof(KtlsOptions.ZeroCopySendFile));
        }
    }

    internal static void TurnOn(Socket socket, bool isServer, int option, string name)
    {
        try
        {
            socket.SetRawSocketOption(LevelTls, option, BitConverter.GetBytes(1));
        }
        catch (SocketException e)
        {
            KtlsEventSource.Log.OptionRefused(isServer, name, e.Message);
        }
    }
}
