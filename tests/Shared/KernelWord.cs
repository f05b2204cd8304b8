using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.Tests;

/// <summary>Queries the kernel's state of one socket (TCP_ULP, TLS_INFO).</summary>
internal static class KernelWord
{
    public static unsafe SocketInfo On(Socket socket)
    {
        SocketInfo info;
        Assert.Equal(0, KtlsNative.KtlsNative_GetSocketInfo(socket.SafeHandle, &info));
        return info;
    }

    /// <summary>Returns the layer above TCP.</summary>
    public static unsafe SocketLayer LayerOf(Socket socket)
    {
        SocketLayer layer;
        Assert.Equal(0, KtlsNative.KtlsNative_GetLayer(socket.SafeHandle, &layer));
        return layer;
    }

    /// <summary>Returns the directions whose keys the kernel has.</summary>
    public static KtlsDirections DirectionsOf(Socket socket)
    {
        SocketInfo info = On(socket);
        return (info.SendConfiguration == KernelConfiguration.None ? KtlsDirections.None : KtlsDirections.Send)
            | (info.ReceiveConfiguration == KernelConfiguration.None ? KtlsDirections.None : KtlsDirections.Receive);
    }
}
