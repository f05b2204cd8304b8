using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;

namespace KernelTls.Tests;

/// <summary>Performs the handshakes, as server and as client.</summary>
internal sealed partial class TlsPeer
{
    private readonly List<byte> _transcript = [];
    private readonly byte[] _random = Seeded(32);

    /// <summary>Returns fixed random bytes, so that the effect of a fault on a hello does not vary.</summary>
    private static byte[] Seeded(int length)
    {
        byte[] bytes = new byte[length];
        new Random(23).NextBytes(bytes);
        return bytes;
    }

    /// <summary>
    /// Performs the handshake. Returns false if it was stopped or the other end closed the connection.
    /// </summary>
    public async Task<bool> ShakeHandsAsync()
    {
        using ECDiffieHellman key = ECDiffieHellman.Create(ECCurve.NamedCurves.nistP256);
        return (_isServer, IsTls13) switch
        {
            (true, true) => await ServeTls13Async(key),
            (true, false) => await ServeTls12Async(key),
            (false, true) => await AskTls13Async(key),
            (false, false) => await AskTls12Async(key),
        };
    }

    private async Task<bool> ServeTls13Async(ECDiffieHellman key)
    {
        if (await ReadAsync(HandshakeMessages.ClientHello) is not { } hello)
        {
            return false;
        }

        byte[]? point = HandshakeMessages.PointOf(hello);
        if (point is null)
        {
            // RFC 8446, 4.4.1: a hash replaces the first ClientHello.
            byte[] hash = SHA256.HashData(hello);
            _transcript.Clear();
            _transcript.AddRange(HandshakeMessages.Message(HandshakeMessages.MessageHash, hash));
            byte[] retry = HandshakeMessages.NewServerHello13(_random, HandshakeMessages.SessionIdOf(hello), null);
            if (!await SayAsync("HelloRetryRequest", retry) || await ReadAsync(HandshakeMessages.ClientHello) is not { } second)
            {
                return false;
            }

            (hello, point) = (second, HandshakeMessages.PointOf(second)!);
        }

        byte[] answer = HandshakeMessages.NewServerHello13(_random, HandshakeMessages.SessionIdOf(hello), PointOf(key));
        if (!await SayAsync("ServerHello", answer))
        {
            return false;
        }

        (byte[] client, byte[] server, byte[] master) = DeriveHandshakeSecrets(Agree(key, point));
        (_write, _read) = (RecordKeys.Tls13(server), RecordKeys.Tls13(client));
        if (!await ChangeCipherSpecAsync()
            || !await SayAsync("EncryptedExtensions", HandshakeMessages.NewEncryptedExtensions(_protocol))
            || !await SayAsync("Certificate", NewCertificate())
            || !await SayAsync("CertificateVerify", NewCertificateVerify())
            || !await SayAsync("Finished", HandshakeMessages.Message(HandshakeMessages.Finished, KeySchedule.Verify(server, _transcript))))
        {
            return false;
        }

        _write = RecordKeys.Tls13(KeySchedule.Derive(master, "s ap traffic", _transcript));
        RecordKeys next = RecordKeys.Tls13(KeySchedule.Derive(master, "c ap traffic", _transcript));
        if (await ReadAsync(HandshakeMessages.Finished) is null)
        {
            return false;
        }

        _read = next;
        return true;
    }

    private async Task<bool> AskTls13Async(ECDiffieHellman key)
    {
        if (!await SayAsync("ClientHello", HandshakeMessages.NewClientHello(true, _random, PointOf(key), _protocol))
            || await ReadAsync(HandshakeMessages.ServerHello) is not { } answer)
        {
            return false;
        }

        (byte[] client, byte[] server, byte[] master) = DeriveHandshakeSecrets(Agree(key, HandshakeMessages.PointOf(answer)!));
        _read = RecordKeys.Tls13(server);
        if (await ReadAsync(HandshakeMessages.Finished) is null)
        {
            return false;
        }

        _read = RecordKeys.Tls13(KeySchedule.Derive(master, "s ap traffic", _transcript));
        byte[] next = KeySchedule.Derive(master, "c ap traffic", _transcript);
        if (!await ChangeCipherSpecAsync())
        {
            return false;
        }

        _write = RecordKeys.Tls13(client);
        if (!await SayAsync("Finished", HandshakeMessages.Message(HandshakeMessages.Finished, KeySchedule.Verify(client, _transcript))))
        {
            return false;
        }

        _write = RecordKeys.Tls13(next);
        return true;
    }

    private async Task<bool> ServeTls12Async(ECDiffieHellman key)
    {
        if (await ReadAsync(HandshakeMessages.ClientHello) is not { } hello)
        {
            return false;
        }

        byte[] clientRandom = HandshakeMessages.RandomOf(hello);
        byte[] parameters = [3, 0, 23, .. HandshakeMessages.Vector(PointOf(key), 1)];
        byte[] signature = Sign([.. clientRandom, .. _random, .. parameters]);
        byte[] exchange = [.. parameters, .. HandshakeMessages.EcdsaSha256, .. HandshakeMessages.Vector(signature, 2)];
        if (!await SayAsync("ServerHello", HandshakeMessages.NewServerHello12(_random, _protocol))
            || !await SayAsync("Certificate", NewCertificate())
            || !await SayAsync("ServerKeyExchange", HandshakeMessages.Message(HandshakeMessages.ServerKeyExchange, exchange))
            || !await SayAsync("ServerHelloDone", HandshakeMessages.Message(HandshakeMessages.ServerHelloDone))
            || await ReadAsync(HandshakeMessages.ClientKeyExchange) is not { } clientExchange)
        {
            return false;
        }

        (byte[] master, RecordKeys client, RecordKeys server) =
            DeriveTls12(Agree(key, clientExchange[(HandshakeMessages.HeaderSize + 1)..]), clientRandom, _random);
        _nextRead = client;
        if (await ReadAsync(HandshakeMessages.Finished) is null || !await ChangeCipherSpecAsync())
        {
            return false;
        }

        _write = server;
        return await SayAsync("Finished", NewFinished12(master, "server finished"));
    }

    private async Task<bool> AskTls12Async(ECDiffieHellman key)
    {
        if (!await SayAsync("ClientHello", HandshakeMessages.NewClientHello(false, _random, [], _protocol))
            || await ReadAsync(HandshakeMessages.ServerHello) is not { } answer
            || await ReadAsync(HandshakeMessages.ServerKeyExchange) is not { } exchange
            || await ReadAsync(HandshakeMessages.ServerHelloDone) is null)
        {
            return false;
        }

        byte[] point = exchange[(HandshakeMessages.HeaderSize + 4)..(HandshakeMessages.HeaderSize + 4 + HandshakeMessages.PointSize)];
        (byte[] master, RecordKeys client, RecordKeys server) = DeriveTls12(Agree(key, point), _random, HandshakeMessages.RandomOf(answer));
        _nextRead = server;
        byte[] own = HandshakeMessages.Message(HandshakeMessages.ClientKeyExchange, HandshakeMessages.Vector(PointOf(key), 1));
        if (!await SayAsync("ClientKeyExchange", own) || !await ChangeCipherSpecAsync())
        {
            return false;
        }

        _write = client;
        return await SayAsync("Finished", NewFinished12(master, "client finished"))
            && await ReadAsync(HandshakeMessages.Finished) is not null;
    }

    private async Task<bool> SayAsync(string name, byte[] message)
    {
        _transcript.AddRange(message);
        return await StepAsync(new PeerStep(name, RecordType.Handshake, message));
    }

    private Task<bool> ChangeCipherSpecAsync() => StepAsync(new PeerStep("ChangeCipherSpec", RecordType.ChangeCipherSpec, [1]));

    private async Task<bool> StepAsync(PeerStep step)
    {
        PeerChoice choice = Meddle is null ? PeerChoice.Send : await Meddle(this, step);
        if (choice == PeerChoice.Send)
        {
            await SendAsync(step.Type == RecordType.ChangeCipherSpec ? Plain(step.Type, step.Content) : Seal(step.Type, step.Content));
        }

        return choice != PeerChoice.Stop;
    }

    /// <summary>
    /// Returns the next message of this type and skips others, or returns <see langword="null"/> after an alert or the
    /// end.
    /// </summary>
    private async Task<byte[]?> ReadAsync(byte type)
    {
        while (true)
        {
            while (TakeMessage() is { } message)
            {
                _transcript.AddRange(message);
                if (message[0] == type)
                {
                    return message;
                }
            }

            if (await ReadRecordAsync() is not { } record)
            {
                return null;
            }

            Take(record);
            if (Alerts.Length > 0)
            {
                return null;
            }
        }
    }

    private byte[]? TakeMessage()
    {
        if (_messages.Count < HandshakeMessages.HeaderSize)
        {
            return null;
        }

        int length = HandshakeMessages.HeaderSize + ((_messages[1] << 16) | (_messages[2] << 8) | _messages[3]);
        if (_messages.Count < length)
        {
            return null;
        }

        byte[] message = [.. _messages[..length]];
        _messages.RemoveRange(0, length);
        return message;
    }

    /// <summary>Processes messages after the handshake: ignores tickets, and changes keys on a KeyUpdate.</summary>
    private void TakeKeyUpdates()
    {
        while (TakeMessage() is { } message)
        {
            if (message[0] == HandshakeMessages.KeyUpdate && IsTls13)
            {
                RecordKeys old = _read!;
                _read = old.Next();
                old.Dispose();
            }
        }
    }

    private (byte[] Client, byte[] Server, byte[] Master) DeriveHandshakeSecrets(byte[] shared)
    {
        byte[] none = new byte[KeySchedule.HashSize];
        byte[] early = KeySchedule.Extract(none, none);
        byte[] handshake = KeySchedule.Extract(KeySchedule.Derive(early, "derived", []), shared);
        return (
            KeySchedule.Derive(handshake, "c hs traffic", _transcript),
            KeySchedule.Derive(handshake, "s hs traffic", _transcript),
            KeySchedule.Extract(KeySchedule.Derive(handshake, "derived", []), none));
    }

    private static (byte[] Master, RecordKeys Client, RecordKeys Server) DeriveTls12(byte[] shared, byte[] client, byte[] server)
    {
        byte[] master = KeySchedule.Prf(shared, "master secret", [.. client, .. server], 48);
        const int key = RecordKeys.KeySize;
        const int salt = RecordKeys.SaltSize;
        byte[] block = KeySchedule.Prf(master, "key expansion", [.. server, .. client], 2 * (key + salt));
        return (
            master,
            RecordKeys.Tls12(block[..key], block[(2 * key)..(2 * key + salt)]),
            RecordKeys.Tls12(block[key..(2 * key)], block[(2 * key + salt)..]));
    }

    private byte[] NewFinished12(byte[] master, string label) => HandshakeMessages.Message(
        HandshakeMessages.Finished, KeySchedule.Prf(master, label, SHA256.HashData([.. _transcript]), 12));

    private byte[] NewCertificate()
    {
        byte[] certificate = HandshakeMessages.Vector(Certificates.Ecdsa.RawData, 3);
        return HandshakeMessages.Message(
            HandshakeMessages.Certificate,
            IsTls13 ? [0, .. HandshakeMessages.Vector([.. certificate, 0, 0], 3)] : HandshakeMessages.Vector(certificate, 3));
    }

    private byte[] NewCertificateVerify()
    {
        byte[] context = Encoding.ASCII.GetBytes($"{new string(' ', 64)}TLS 1.3, server CertificateVerify\0");
        byte[] signature = Sign([.. context, .. SHA256.HashData([.. _transcript])]);
        return HandshakeMessages.Message(
            HandshakeMessages.CertificateVerify, [.. HandshakeMessages.EcdsaSha256, .. HandshakeMessages.Vector(signature, 2)]);
    }

    private static byte[] Sign(byte[] data)
    {
        using ECDsa key = Certificates.Ecdsa.GetECDsaPrivateKey()!;
        return key.SignData(data, HashAlgorithmName.SHA256, DSASignatureFormat.Rfc3279DerSequence);
    }

    private static byte[] Agree(ECDiffieHellman key, byte[] point)
    {
        using ECDiffieHellman other = ECDiffieHellman.Create(new ECParameters
        {
            Curve = ECCurve.NamedCurves.nistP256,
            Q = new ECPoint { X = point[1..33], Y = point[33..] },
        });
        return key.DeriveRawSecretAgreement(other.PublicKey);
    }

    private static byte[] PointOf(ECDiffieHellman key)
    {
        ECPoint q = key.ExportParameters(false).Q;
        return [4, .. q.X!, .. q.Y!];
    }
}
