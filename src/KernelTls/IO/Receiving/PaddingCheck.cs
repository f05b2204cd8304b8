using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>
/// Makes the kernel expect padding again on one connection, if <see cref="PaddingWatch"/> says so. The default value does nothing. Used by
/// the reader only.
/// </summary>
/// <param name="isServer">Whether this end is the server, for the event.</param>
internal struct PaddingCheck(bool isServer)
{
    private int _receives = PaddingWatch.ReceivesBetweenQuestions;

    /// <summary>Counts a receive.</summary>
    public void Count(Socket socket)
    {
        if (_receives == 0 || --_receives != 0)
        {
            return;
        }

        if (PaddingWatch.Shared.ExpectsNone)
        {
            _receives = PaddingWatch.ReceivesBetweenQuestions;
        }
        else
        {
            SocketOptions.ExpectPadding(socket, isServer);
        }
    }
}
