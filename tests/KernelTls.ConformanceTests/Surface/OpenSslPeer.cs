using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Implements the other end of a connection with an OpenSSL of its own, which records each message and record that it
/// receives, decrypted. It accepts any certificate.
/// </summary>
internal sealed class OpenSslPeer : IDisposable
{
    private const int EcKey = 408;
    private const int RsaKey = 6;
    private const int ClientCache = 1;

    private readonly OpenSslPeerOptions _options;
    private readonly Socket _socket;
    private readonly bool _isServer;
    private readonly byte[] _buffer = new byte[64 * 1024];
    private readonly GCHandle _self;
    private readonly nint _ssl;
    private readonly nint _in;
    private readonly nint _out;

    /// <summary>Creates a peer.</summary>
    /// <param name="context">The context, which <see cref="NewContext"/> returned.</param>
    /// <param name="socket">The connected socket, which the caller keeps.</param>
    /// <param name="isServer">Whether this end is the server.</param>
    /// <param name="options">What this end supports.</param>
    /// <param name="session">The session to offer, or 0.</param>
    public unsafe OpenSslPeer(nint context, Socket socket, bool isServer, OpenSslPeerOptions options, nint session = 0)
    {
        (_socket, _isServer, _options) = (socket, isServer, options);
        _self = GCHandle.Alloc(this);
        _ssl = LibSsl.New(context);
        _in = LibSsl.NewBio(LibSsl.MemoryBio());
        _out = LibSsl.NewBio(LibSsl.MemoryBio());
        LibSsl.SetBios(_ssl, _in, _out);
        LibSsl.SetMessageCallback(_ssl, &Note);
        LibSsl.SslControl(_ssl, LibSsl.Control.MessageCallbackArgument, 0, GCHandle.ToIntPtr(_self));
        if (isServer)
        {
            LibSsl.SetAcceptState(_ssl);
            return;
        }

        LibSsl.SetConnectState(_ssl);
        LibSsl.SslControl(_ssl, LibSsl.Control.ServerName, 0, options.ServerName);
        if (options.AsksForStatus)
        {
            LibSsl.SslControl(_ssl, LibSsl.Control.StatusRequestType, 1, 0);
        }

        if (session != 0)
        {
            Assert.Equal(1, LibSsl.SetSession(_ssl, session));
        }
    }

    /// <summary>Gets what this end has received: content types (256 for a record's header) with their content.</summary>
    public List<(int Type, byte[] Content)> Received { get; } = [];

    /// <summary>Gets a value that indicates whether the connection is TLS 1.3.</summary>
    public bool IsTls13 => LibSsl.Version(_ssl) == 0x304;

    /// <summary>Creates the context of one or more connections, which share tickets.</summary>
    public static unsafe nint NewContext(bool isServer, OpenSslPeerOptions options)
    {
        nint context = LibSsl.NewContext(LibSsl.Method());
        LibSsl.SetVerifyCallback(context, &Accept, 0);
        LibSsl.SetVerify(context, options.AsksForCertificate || !isServer ? LibSsl.VerifyPeer : 0, 0);
        Assert.Equal(1, LibSsl.SetSessionIdContext(context, "surface"u8, 7));
        Set(LibSsl.Control.MinVersion, options.MinVersion, null);
        Set(LibSsl.Control.MaxVersion, options.MaxVersion, null);
        if (options.Groups is { } groups)
        {
            Set(LibSsl.Control.Groups, 0, groups);
        }

        if (options.CipherList is { } list)
        {
            Assert.Equal(1, LibSsl.SetCipherList(context, list));
        }

        if (options.Certificate is { } certificate)
        {
            Use(context, certificate);
        }

        if (!isServer)
        {
            LibSsl.ContextControl(context, LibSsl.Control.SessionCacheMode, ClientCache, null);
            byte[] protocols = [.. options.Protocols.SelectMany(p => new[] { (byte)p.Length }.Concat(System.Text.Encoding.ASCII.GetBytes(p)))];
            Assert.Equal(0, LibSsl.SetAlpn(context, protocols, (uint)protocols.Length));
        }
        else if (options.Protocols.Length > 0)
        {
            LibSsl.SetAlpnCallback(context, &ChooseFirst, 0);
        }

        return context;

        void Set(LibSsl.Control command, int number, string? text) =>
            Assert.Equal(1, LibSsl.ContextControl(context, command, number, text));
    }

    /// <summary>
    /// Performs the handshake, exchanges a byte each way and receives until the other end closes.
    /// </summary>
    /// <returns>How the connection ended.</returns>
    public async Task<string> RunAsync()
    {
        byte[] one = new byte[1];
        if (!await StepUntilDoneAsync(() => LibSsl.Handshake(_ssl)) || !await StepUntilDoneAsync(() => LibSsl.Read(_ssl, one, 1)))
        {
            return await EndAsync();
        }

        LibSsl.ClearErrors();
        _ = LibSsl.Write(_ssl, one, 1);
        await FlushAsync();
        while (await StepUntilDoneAsync(() => LibSsl.Read(_ssl, one, 1)))
        {
        }

        LibSsl.ClearErrors();
        _ = LibSsl.Shutdown(_ssl);
        return await EndAsync();
    }

    /// <summary>Returns the session, to be freed by the caller.</summary>
    public nint TakeSession() => LibSsl.GetSession(_ssl);

    public void Dispose()
    {
        LibSsl.Free(_ssl);
        _self.Free();
    }

    /// <summary>Repeats a step until it succeeds. Returns false if it failed, or the other end has ended its half.</summary>
    private async Task<bool> StepUntilDoneAsync(Func<int> step)
    {
        while (true)
        {
            LibSsl.ClearErrors();
            int result = step();
            int error = result > 0 ? 0 : LibSsl.GetError(_ssl, result);
            LibSsl.ClearErrors();
            await FlushAsync();
            if (error != LibSsl.ErrorWantRead)
            {
                return error == 0;
            }

            int read = await ReceiveAsync();
            if (read <= 0)
            {
                return false;
            }

            LibSsl.WriteBio(_in, _buffer, read);
        }
    }

    private async Task FlushAsync()
    {
        byte[] bytes = new byte[64 * 1024];
        for (int length; (length = LibSsl.ReadBio(_out, bytes, bytes.Length)) > 0;)
        {
            try
            {
                await _socket.SendAsync(bytes.AsMemory(0, length));
            }
            catch (SocketException)
            {
                // The other end has closed. What it has sent can still be received.
            }
        }
    }

    /// <summary>Ends this half and returns how the other end closes the connection.</summary>
    private async Task<string> EndAsync()
    {
        await FlushAsync();
        int read;
        while ((read = await ReceiveAsync()) > 0)
        {
            // Alerts and messages that follow a failure.
            LibSsl.WriteBio(_in, _buffer, read);
            LibSsl.ClearErrors();
            byte[] one = new byte[1];
            _ = LibSsl.Read(_ssl, one, 1);
        }

        return read == 0 ? "FIN" : "reset";
    }

    private async Task<int> ReceiveAsync()
    {
        try
        {
            return await _socket.ReceiveAsync(_buffer.AsMemory()).InTime("bytes from the end under test");
        }
        catch (SocketException)
        {
            return -1;
        }
    }

    private static void Use(nint context, X509Certificate2 certificate)
    {
        byte[] der = certificate.RawData;
        Assert.Equal(1, LibSsl.UseCertificate(context, der.Length, der));
        using ECDsa? ecdsa = certificate.GetECDsaPrivateKey();
        using RSA? rsa = certificate.GetRSAPrivateKey();
        byte[] key = ecdsa?.ExportECPrivateKey() ?? rsa!.ExportRSAPrivateKey();
        Assert.Equal(1, LibSsl.UsePrivateKey(ecdsa is null ? RsaKey : EcKey, context, key, key.Length));
    }

    [UnmanagedCallersOnly]
    private static int Accept(nint store, nint argument) => 1;

    /// <summary>Chooses the client's first protocol.</summary>
    [UnmanagedCallersOnly]
    private static unsafe int ChooseFirst(nint ssl, byte** chosen, byte* chosenLength, byte* offered, uint length, nint argument)
    {
        *chosenLength = offered[0];
        *chosen = offered + 1;
        return 0;
    }

    [UnmanagedCallersOnly]
    private static unsafe void Note(int isSent, int version, int type, byte* content, nuint length, nint ssl, nint self)
    {
        if (isSent == 0)
        {
            ((OpenSslPeer)GCHandle.FromIntPtr(self).Target!).Received.Add((type, new ReadOnlySpan<byte>(content, (int)length).ToArray()));
        }
    }
}
