using System.Net;
using System.Runtime.InteropServices;
using System.Security.Authentication.ExtendedProtection;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// Represents a channel binding token (RFC 5929) in .NET's format: the eight integers of SEC_CHANNEL_BINDINGS, the
/// prefix that names the kind, and the data.
/// </summary>
internal sealed unsafe class TlsChannelBinding : ChannelBinding
{
    private const int HeaderSize = 8 * sizeof(int);
    private const int LengthIndex = 6;
    private const int OffsetIndex = 7;

    private TlsChannelBinding(ReadOnlySpan<byte> prefix, ReadOnlySpan<byte> data)
        : base(ownsHandle: true)
    {
        Size = HeaderSize + prefix.Length + data.Length;
        SetHandle((nint)NativeMemory.AllocZeroed((nuint)Size));
        Span<byte> token = new((void*)handle, Size);
        Span<int> header = MemoryMarshal.Cast<byte, int>(token[..HeaderSize]);
        header[LengthIndex] = prefix.Length + data.Length;
        header[OffsetIndex] = HeaderSize;
        prefix.CopyTo(token[HeaderSize..]);
        data.CopyTo(token[(HeaderSize + prefix.Length)..]);
    }

    public override int Size { get; }

    public override bool IsInvalid => handle == 0;

    /// <summary>
    /// Creates tls-unique (section 3.1): the first Finished message of the handshake, which is the server's if a
    /// session was resumed.
    /// </summary>
    public static TlsChannelBinding Unique(TlsSession session) =>
        new("tls-unique:"u8, session.GetFinished(ofPeer: session.Settings.IsServer != session.IsResumed));

    protected override bool ReleaseHandle()
    {
        NativeMemory.Free((void*)handle);
        return true;
    }
}

/// <summary>
/// Provides a stream's channel bindings: tls-unique from its session, if there is one, and all else from the base class, which
/// knows the server's certificate (<see cref="Bystanders"/>).
/// </summary>
internal sealed class TlsTransportContext(Func<TlsSession?> currentSession, TransportContext managed) : TransportContext
{
    public override ChannelBinding? GetChannelBinding(ChannelBindingKind kind) =>
        kind == ChannelBindingKind.Unique && currentSession() is { } session
            ? TlsChannelBinding.Unique(session)
            : managed.GetChannelBinding(kind);
}
