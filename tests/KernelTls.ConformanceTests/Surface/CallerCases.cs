using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Lists the connections that a caller observes.</summary>
internal static class CallerCases
{
    /// <summary>More than the buffers of both sockets hold.</summary>
    private static readonly byte[] s_much = new byte[32 * 1024 * 1024];

    private static readonly SslProtocols[] s_versions = [SslProtocols.Tls12, SslProtocols.Tls13];
    private static readonly bool[] s_either = [false, true];

    private static readonly TimeSpan s_untilItWaits = TimeSpan.FromMilliseconds(Cell.IsLab ? 400 : 100);

    /// <summary>The operations that the peer keeps waiting: it sends nothing and reads nothing.</summary>
    private static readonly (string Name, Func<SslStream, Task> Begin)[] s_pending =
    [
        ("a read", async s => AssertRead(await s.ReadAsync(new byte[1]))),
        ("a blocking read", s => Started(() => AssertRead(s.Read(new byte[1])))),
        ("a begun read", s => Task.Factory.FromAsync(s.BeginRead(new byte[1], 0, 1, null, null), s.EndRead)),
        ("a write", s => s.WriteAsync(s_much).AsTask()),
        ("a blocking write", s => Started(() => s.Write(s_much))),
        ("a begun write", s => Task.Factory.FromAsync(s.BeginWrite(s_much, 0, s_much.Length, null, null), s.EndWrite)),
    ];

    private static readonly Lazy<CallerCase[]> s_all = new(() =>
    [
        .. from version in s_versions from each in Clients(version).Concat(Servers(version)) select each,
        .. from version in s_versions from isServer in s_either from each in Ends(version, isServer) select each,
    ]);

    public static IReadOnlyList<CallerCase> All => s_all.Value;

    private static IEnumerable<CallerCase> Clients(SslProtocols version)
    {
        yield return new("plain", false, version);
        yield return new("plain", false, version) { Blocks = true };
        yield return new("application protocol", false, version) { Client = Protocols, Server = Protocols };
        yield return new("session resumed", false, version) { Connections = 3 };
        yield return new("session resumed, callback", false, version)
        {
            Connections = 3,
            Client = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation(),
        };
        yield return new("session resumed, refused by the callback", false, version)
        {
            Connections = 3,
            Client = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation(),
            LastClient = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation(false),
        };
        yield return new("validation callback", false, version) { Client = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation() };
        yield return new("validation callback, no policy", false, version)
        {
            Client = (c, notes) => (c.CertificateChainPolicy, c.RemoteCertificateValidationCallback) = (null, notes.Validation(true)),
        };
        yield return new("validation callback, chain of three", false, version)
        {
            Client = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation(),
            Server = (s, _) => s.ServerCertificateContext = Certificates.ChainedContext,
        };
        yield return new("client certificate", false, version)
        {
            Client = (c, notes) =>
            {
                c.ClientCertificateContext = Certificates.ClientContext;
                c.RemoteCertificateValidationCallback = notes.Validation();
            },
            Server = (s, _) => s.ClientCertificateRequired = true,
        };
        yield return new("client certificate, not requested", false, version) { Client = (c, _) => c.ClientCertificateContext = Certificates.ClientContext };
        yield return new("selection callback", false, version)
        {
            Client = (c, notes) => c.LocalCertificateSelectionCallback = notes.Selection(server => server is null ? null : Certificates.Client),
            Server = (s, _) => s.ClientCertificateRequired = true,
        };
        foreach (bool blocks in s_either)
        {
            yield return new("refused by the callback", false, version)
            {
                Blocks = blocks,
                Client = (c, notes) => c.RemoteCertificateValidationCallback = notes.Validation(false),
            };
            yield return new("refused by the callback's exception", false, version)
            {
                Blocks = blocks,
                Client = (c, _) => c.RemoteCertificateValidationCallback = (_, _, _, _) => throw new InvalidOperationException("on purpose"),
            };
            yield return new("refused: the name", false, version) { Blocks = blocks, Client = (c, _) => c.TargetHost = "elsewhere.test" };
            yield return new("refused: the authority", false, version) { Blocks = blocks, Client = (c, _) => c.CertificateChainPolicy!.CustomTrustStore.Clear() };
            yield return new("refused: no application protocol", false, version)
            {
                Blocks = blocks,
                Client = Protocols,
                Server = (s, _) => s.ApplicationProtocols = [SslApplicationProtocol.Http11],
            };
        }

        yield return new("refused: revocation unknown", false, version)
        {
            Client = (c, notes) =>
            {
                c.CertificateChainPolicy!.RevocationMode = System.Security.Cryptography.X509Certificates.X509RevocationMode.Offline;
                c.RemoteCertificateValidationCallback = notes.Validation();
            },
        };
        yield return new("refused: revocation unknown, by no callback", false, version)
        {
            Client = (c, _) => c.CertificateChainPolicy!.RevocationMode = System.Security.Cryptography.X509Certificates.X509RevocationMode.Offline,
        };
    }

    private static IEnumerable<CallerCase> Servers(SslProtocols version)
    {
        yield return new("plain", true, version);
        yield return new("plain", true, version) { Blocks = true };
        yield return new("application protocol", true, version) { Client = Protocols, Server = Protocols };
        yield return new("session resumed", true, version) { Connections = 2 };
        yield return new("client certificate", true, version)
        {
            Client = (c, _) => c.ClientCertificateContext = Certificates.ClientContext,
            Server = (s, notes) => (s.ClientCertificateRequired, s.RemoteCertificateValidationCallback) = (true, notes.Validation()),
        };
        yield return new("client certificate, session resumed", true, version)
        {
            Connections = 2,
            Client = (c, _) => c.ClientCertificateContext = Certificates.ClientContext,
            Server = (s, notes) => (s.ClientCertificateRequired, s.RemoteCertificateValidationCallback) = (true, notes.Validation()),
        };
        yield return new("client certificate, no policy", true, version)
        {
            Client = (c, _) => c.ClientCertificateContext = Certificates.ClientContext,
            Server = (s, notes) =>
                (s.ClientCertificateRequired, s.CertificateChainPolicy, s.RemoteCertificateValidationCallback) = (true, null, notes.Validation(true)),
        };
        yield return new("client certificate, none sent", true, version)
        {
            Server = (s, notes) => (s.ClientCertificateRequired, s.RemoteCertificateValidationCallback) = (true, notes.Validation(true)),
        };
        yield return new("selection callback", true, version)
        {
            Server = (s, notes) => (s.ServerCertificateContext, s.ServerCertificateSelectionCallback) = (null, notes.ServerSelection(Certificates.Ecdsa)),
        };
        yield return new("options callback", true, version) { ChoosesOptions = true };
        foreach (bool blocks in s_either)
        {
            yield return new("refused: the authority", true, version)
            {
                Blocks = blocks,
                Client = (c, _) => c.ClientCertificateContext = Certificates.KindContext("other client"),
                Server = (s, _) => s.ClientCertificateRequired = true,
            };
            yield return new("refused: no certificate", true, version) { Blocks = blocks, Server = (s, _) => s.ClientCertificateRequired = true };
            yield return new("refused: no application protocol", true, version)
            {
                Blocks = blocks,
                Client = Protocols,
                Server = (s, _) => s.ApplicationProtocols = [SslApplicationProtocol.Http11],
            };
            yield return new("refused by the callback", true, version)
            {
                Blocks = blocks,
                Client = (c, _) => c.ClientCertificateContext = Certificates.ClientContext,
                Server = (s, notes) => (s.ClientCertificateRequired, s.RemoteCertificateValidationCallback) = (true, notes.Validation(false)),
            };
        }
    }

    /// <summary>Returns the connections that end badly.</summary>
    private static IEnumerable<CallerCase> Ends(SslProtocols version, bool isServer)
    {
        foreach ((string name, Func<Socket, Task> peer) in new (string, Func<Socket, Task>)[]
        {
            ("a peer that ends", s => AfterHelloAsync(s, isServer, [], reset: false)),
            ("a peer that resets", s => AfterHelloAsync(s, isServer, [], reset: true)),
            ("a peer that sends an alert", s => AfterHelloAsync(s, isServer, [21, 3, 3, 0, 2, 2, 40], reset: false)),
            ("a peer that sends text", s => AfterHelloAsync(s, isServer, "HTTP/1.1 400 Bad Request\r\n\r\n"u8.ToArray(), reset: false)),
        })
        {
            foreach (bool blocks in s_either)
            {
                yield return new(name, isServer, version) { RawPeer = peer, Blocks = blocks };
            }
        }

        foreach (bool blocks in s_either)
        {
            foreach (bool disposesBlocking in s_either)
            {
                yield return new($"disposed in the handshake{(disposesBlocking ? " by Dispose" : "")}", isServer, version)
                {
                    Blocks = blocks,
                    RawPeer = SurfaceStreams.ToEndAsync,
                    Interrupt = s => disposesBlocking ? Limits.Blocking(s.Dispose) : s.DisposeAsync().AsTask(),
                };
            }
        }

        foreach ((string name, Func<Socket, SslStream, Task> act) in new (string, Func<Socket, SslStream, Task>)[]
        {
            ("close_notify", (_, peer) => peer.ShutdownAsync()),
            ("FIN", (socket, _) => Do(() => socket.Shutdown(SocketShutdown.Send))),
            ("reset", (socket, _) => Do(() => socket.Close(0))),
            ("an unprotected record", (socket, _) => socket.SendAsync(new byte[] { 23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 })),
        })
        {
            yield return new($"a read after the peer's {name}", isServer, version)
            {
                Then = async (stream, socket, peer) =>
                {
                    await act(socket, peer);
                    await stream.ReadExactlyAsync(new byte[1]);
                },
            };
            yield return new($"a blocking read after the peer's {name}", isServer, version)
            {
                Then = async (stream, socket, peer) =>
                {
                    await act(socket, peer);
                    await Limits.Blocking(() => stream.ReadExactly(new byte[1]));
                },
            };
        }

        foreach ((string name, Func<SslStream, Task> begin) in s_pending)
        {
            foreach (bool blocks in s_either)
            {
                yield return new($"{name} that is pending when the stream is disposed{(blocks ? " by Dispose" : "")}", isServer, version)
                {
                    ByTime = true,
                    Then = async (stream, _, _) =>
                    {
                        Task pending = begin(stream);
                        await WaitAsync(pending);
                        await (blocks ? Limits.Blocking(stream.Dispose) : stream.DisposeAsync().AsTask());
                        await pending;
                    },
                };
            }
        }
    }

    /// <summary>
    /// Throws what SslStream throws as a rule. It may also see the end of the socket, which is shut down before its operations are
    /// canceled. DisposedReadTests has what this library may do.
    /// </summary>
    private static void AssertRead(int count)
    {
        Assert.Equal(0, count);
        throw new IOException("The read has ended.");
    }

    /// <summary>Runs blocking code on a separate thread, and returns when the thread has started.</summary>
    public static Task Started(Action work)
    {
        bool isStarted = false;
        Task task = Limits.Blocking(() =>
        {
            Volatile.Write(ref isStarted, true);
            work();
        });
        Assert.True(SpinWait.SpinUntil(() => Volatile.Read(ref isStarted), Limits.Wait), "no thread has started");
        return task;
    }

    /// <summary>Waits until the operation waits: a write may have found some room first.</summary>
    public static async Task WaitAsync(Task operation)
    {
        await Task.Delay(s_untilItWaits);
        Assert.False(operation.IsCompleted, $"the operation did not wait: {operation.Exception}");
    }

    /// <summary>Waits for a client's first bytes, sends and ends.</summary>
    private static async Task AfterHelloAsync(Socket socket, bool isClient, byte[] bytes, bool reset)
    {
        if (!isClient)
        {
            Assert.NotEqual(0, await socket.ReceiveAsync(new byte[16 * 1024]));
        }

        await socket.SendAsync(bytes);
        if (reset)
        {
            socket.Close(0);
        }
        else
        {
            socket.Shutdown(SocketShutdown.Send);
        }
    }

    private static Task Do(Action work)
    {
        work();
        return Task.CompletedTask;
    }

    private static void Protocols(SslClientAuthenticationOptions options, CallerNotes notes) => options.ApplicationProtocols = [SslApplicationProtocol.Http2];

    private static void Protocols(SslServerAuthenticationOptions options, CallerNotes notes) => options.ApplicationProtocols = [SslApplicationProtocol.Http2];
}
