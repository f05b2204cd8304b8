namespace KernelTls.Tests;

/// <summary>Creates the records of a fault on an established connection, in order.</summary>
/// <param name="peer">The peer, which has the keys.</param>
/// <param name="content">The function that returns data for an offset and a length.</param>
/// <param name="toClient">Whether the client receives the records.</param>
internal sealed class FaultScene(TlsPeer peer, Func<long, int, byte[]> content, bool toClient)
{
    /// <summary>The length of the data before the fault, and of a record that is changed.</summary>
    public const int Usual = 1000;

    public bool IsTls13 => peer.IsTls13;

    public bool ToClient => toClient;

    /// <summary>Gets the length of the data, up to the first gap.</summary>
    public long Size { get; private set; }

    /// <summary>Gets or sets the length of the data delivered.</summary>
    public long Delivered { get; set; }

    /// <summary>Returns a record with the next data.</summary>
    public byte[] Data(int length = Usual, int padding = 0)
    {
        byte[] record = peer.Seal(RecordType.ApplicationData, content(Size, length), padding);
        Size += length;
        return record;
    }

    /// <summary>Returns a record with data that does not count, because the record does not arrive unchanged.</summary>
    public byte[] Lost(int length = Usual) => peer.Seal(RecordType.ApplicationData, content(Size, length));

    /// <summary>Returns an authentic record of any type.</summary>
    public byte[] Sealed(byte type, params ReadOnlySpan<byte> bytes) => peer.Seal(type, bytes);

    /// <summary>Returns an authentic record whose header has another type than it should.</summary>
    public byte[] SealedAs(byte outerType, byte type, ReadOnlySpan<byte> bytes) => peer.Seal(type, bytes, outerType: outerType);

    /// <summary>Returns, for TLS 1.3, an authentic record without a content type.</summary>
    public byte[] Zeros(int length) => peer.SealZeros(length);

    /// <summary>Returns, for TLS 1.3, a KeyUpdate. Later records are under the new keys.</summary>
    public byte[] KeyUpdate(bool requested = false, int extra = 0)
    {
        byte[] record = peer.Seal(
            RecordType.Handshake,
            [.. HandshakeMessages.Message(HandshakeMessages.KeyUpdate, (byte)(requested ? 1 : 0)), .. new byte[extra]]);
        peer.ChangeKeys();
        return record;
    }

    /// <summary>Changes the keys of later records.</summary>
    public void ChangeKeys() => peer.ChangeKeys();
}
