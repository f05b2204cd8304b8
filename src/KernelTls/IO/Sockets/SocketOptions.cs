using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.IO;

/// <summary>Applies the options that are set on the socket.</summary>
/// <remarks>
/// None of them changes the data that is sent or received. If a socket refuses one, an event is written, and the
/// connection continues without it.
/// </remarks>
internal static class SocketOptions
{
    internal const int SolTls = 282;
    internal const int TlsSendZeroCopyReadOnly = 3;
    private const int TlsReceiveExpectNoPad = 4;
    private const int Tls13 = 0x0304;
    private const string ExpectNoPad = "TLS_RX_EXPECT_NO_PAD";

    /// <summary>
    /// Makes the descriptor non-blocking, because OpenSSL must never block inside a record. An asynchronous operation makes .NET
    /// set that mode permanently and emulate blocking in synchronous operations. Sending nothing is the cheapest such operation.
    /// </summary>
    /// <exception cref="IOException">The peer has closed the connection. The message begins with <paramref name="failed"/>.</exception>
    public static void MakeNonBlocking(Socket socket, string failed)
    {
        try
        {
            ValueTask<int> nothing = socket.SendAsync(ReadOnlyMemory<byte>.Empty, SocketFlags.None);
            if (!nothing.IsCompletedSuccessfully)
            {
                nothing.AsTask().GetAwaiter().GetResult();
            }
        }
        catch (SocketException e)
        {
            throw TlsErrors.Socket(failed, e.SocketErrorCode);
        }
    }

    /// <summary>Applies the options that the kernel accepts once it has the keys of a direction.</summary>
    /// <returns>Whether the kernel expects no padding until <see cref="PaddingWatch"/> says otherwise.</returns>
    public static bool ApplyToKernel(Socket socket, bool isServer, KtlsOptions options, in ConnectionInfo info)
    {
        if (options.ZeroCopySendFile && info.KtlsSend != 0)
        {
            Set(socket, isServer, TlsSendZeroCopyReadOnly, 1, "TLS_TX_ZEROCOPY_RO");
        }

        // TLS 1.3 only: other versions have no padding.
        if (options.ExpectNoPadding == KtlsExpectNoPadding.Never || info.KtlsReceive == 0 || info.ProtocolVersion != Tls13)
        {
            return false;
        }

        bool isAutomatic = options.ExpectNoPadding == KtlsExpectNoPadding.Automatic;
        if (!Platform.Current.CanExpectNoPadding)
        {
            if (!isAutomatic)
            {
                KtlsEventSource.Log.SocketOptionRefused(isServer, ExpectNoPad, nameof(SocketError.OperationNotSupported));
            }

            return false;
        }

        return (!isAutomatic || PaddingWatch.Shared.ExpectsNone)
            && Set(socket, isServer, TlsReceiveExpectNoPad, 1, ExpectNoPad)
            && isAutomatic;
    }

    /// <summary>Makes the kernel expect padding again.</summary>
    public static void ExpectPadding(Socket socket, bool isServer) => Set(socket, isServer, TlsReceiveExpectNoPad, 0, ExpectNoPad);

    private static bool Set(Socket socket, bool isServer, int name, int value, string text)
    {
        try
        {
            socket.SetRawSocketOption(SolTls, name, BitConverter.GetBytes(value));
            return true;
        }
        catch (SocketException e)
        {
            KtlsEventSource.Log.SocketOptionRefused(isServer, text, e.SocketErrorCode.ToString());
            return false;
        }
    }
}
