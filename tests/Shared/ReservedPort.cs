using System.Globalization;
using System.Net;
using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Reserves a port on 127.0.0.1 for a program that cannot choose one itself.</summary>
/// <remarks>
/// The port stays bound here without listening. The kernel therefore does not assign it to other sockets, but a
/// listener that names it with SO_REUSEADDR can use it.
/// </remarks>
internal sealed class ReservedPort : IDisposable
{
    private const int SolSocket = 1;
    private const int SoReuseAddr = 2;

    private readonly Socket _holder = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);

    public ReservedPort()
    {
        _holder.SetRawSocketOption(SolSocket, SoReuseAddr, BitConverter.GetBytes(1));
        _holder.Bind(new IPEndPoint(IPAddress.Loopback, 0));
    }

    public int Number => ((IPEndPoint)_holder.LocalEndPoint!).Port;

    public override string ToString() => Number.ToString(CultureInfo.InvariantCulture);

    public void Dispose() => _holder.Dispose();
}
