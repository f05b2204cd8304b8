using System.Net.Sockets;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>What is compared with: the system's calls, without this library.</summary>
internal static partial class SystemCalls
{
    public const int TryAgain = 11;        // EAGAIN
    public const int InvalidArgument = 22; // EINVAL

    [LibraryImport("libc", EntryPoint = "sendfile", SetLastError = true)]
    public static partial nint SendFile(SafeSocketHandle socket, SafeFileHandle file, ref long offset, nint count);
}
