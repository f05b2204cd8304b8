using System.Net.Sockets;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.Interop;

/// <summary>
/// Declares the functions of native/ktls_export.h, which documents their contracts, under their native names.
/// </summary>
internal static unsafe partial class KtlsNative
{
    internal const string LibraryName = "libKernelTls.Native";

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetInterface(ulong* hash);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Initialize(long runtimeVersion, LibraryInfo* info);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_ErrorText(long openSslError, byte* text, int capacity);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_ContextCreate(ContextOptions* options, nint* context, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_RotateTicketKeys(SafeTlsContextHandle context);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetCipherList(SafeHandle sslContext, byte* buffer, int capacity, int* length);

    [LibraryImport(LibraryName)]
    internal static partial void KtlsNative_ContextFree(nint context);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_BystanderCreate(SafeHandle sslContext, byte* session, int length, nint* ssl);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_BystanderReference(SafeHandle ssl);

    [LibraryImport(LibraryName, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int KtlsNative_ConnectionCreate(
        SafeTlsContextHandle context, SafeSocketHandle socket, string? serverName, nint* connection, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_ConnectionMove(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, SafeSocketHandle duplicate);

    [LibraryImport(LibraryName)]
    internal static partial void KtlsNative_ConnectionFree(nint connection);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Handshake(
        SafeTlsConnectionHandle connection,
        int socket,
        delegate* unmanaged<nint, nint*, int, NativeStaple, nint, int> verify,
        nint state,
        NativeResult* result);


    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetClientHello(SafeTlsConnectionHandle connection, ClientHelloData* clientHello);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SwitchContext(
        SafeTlsConnectionHandle connection, SafeTlsContextHandle newContext, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_AbortHandshake(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, int alert, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SetOcspResponse(SafeTlsConnectionHandle connection, byte* data, int length);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetAcceptableIssuer(
        SafeTlsConnectionHandle connection, int index, byte* buffer, int capacity, int* length);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_UseCertificate(
        SafeTlsConnectionHandle connection, Blob* certificates, int count, nint privateKey, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetFinished(
        SafeTlsConnectionHandle connection, int peer, byte* buffer, int capacity, int* length);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_TakeSession(SafeTlsConnectionHandle connection, nint* session);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_UseSession(SafeTlsConnectionHandle connection, SafeTlsSessionHandle session);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SessionInfo(SafeTlsSessionHandle session, SessionInfo* info);

    [LibraryImport(LibraryName)]
    internal static partial void KtlsNative_SessionFree(nint session);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Read(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, byte* buffer, int capacity, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Write(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, byte* buffer, int length, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Flush(SafeTlsConnectionHandle connection, SafeSocketHandle socket, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_ReceiveFailed(SafeTlsConnectionHandle connection, SafeSocketHandle socket, int error);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SocketReceive(SafeSocketHandle socket, byte* buffer, int capacity, int* received);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SocketPeek(SafeSocketHandle socket, byte* buffer, int capacity, int* received);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SocketDiscard(SafeSocketHandle socket, long limit, long* discarded);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SocketDuplicate(SafeSocketHandle socket, int* duplicate);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SocketSend(SafeSocketHandle socket, Blob* segments, int count, long* sent);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_SendFile(
        SafeTlsConnectionHandle connection,
        SafeSocketHandle socket,
        SafeFileHandle file,
        long offset,
        int count,
        int last,
        NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_Shutdown(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_CloseSending(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_KeyUpdate(
        SafeTlsConnectionHandle connection, SafeSocketHandle socket, int requestPeer, NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_RequestCertificate(
        SafeTlsConnectionHandle connection,
        int socket,
        delegate* unmanaged<nint, nint*, int, NativeStaple, nint, int> verify,
        nint state,
        NativeResult* result);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetConnectionInfo(SafeTlsConnectionHandle connection, ConnectionInfo* info);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetPeerCertificate(SafeTlsConnectionHandle connection, int index, nint* certificate);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetSocketInfo(SafeSocketHandle socket, SocketInfo* info);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_GetLayer(SafeSocketHandle socket, SocketLayer* layer);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_ProbeKernel(KernelProbe* probe);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerCreate(int* poller);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerArm(int poller, int socket, NativeWait wait, long token);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerDisarm(int poller, int socket);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerDisarm(int poller, SafeSocketHandle socket);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerWatchPeer(int poller, SafeSocketHandle socket, long token);

    [LibraryImport(LibraryName)]
    internal static partial int KtlsNative_PollerWait(int poller, long* tokens, int capacity, int* count);
}
