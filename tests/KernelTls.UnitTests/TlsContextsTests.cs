using System.Net.Security;
using System.Runtime.CompilerServices;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

public class TlsContextsTests
{
    [Fact]
    public void Equal_keys_share_one_context()
    {
        SafeTlsContextHandle? first = TlsContexts.TryGet(Key("same"), out KtlsFallbackReason reason);
        SafeTlsContextHandle? second = TlsContexts.TryGet(Key("same"), out _);

        Assert.Equal(KtlsFallbackReason.None, reason);
        Assert.NotNull(first);
        Assert.Same(first, second);
        Assert.NotSame(first, TlsContexts.TryGet(Key("other"), out _));
    }

    [Fact]
    public void The_cache_is_bounded_and_drops_what_was_not_used()
    {
        SafeTlsContextHandle? dropped = TlsContexts.TryGet(Key("dropped"), out _);
        SafeTlsContextHandle? used = TlsContexts.TryGet(Key("used"), out _);

        for (int i = 0; i < TlsContexts.Capacity; i++)
        {
            Assert.NotNull(TlsContexts.TryGet(Key($"filler {i}"), out _));
            Assert.Same(used, TlsContexts.TryGet(Key("used"), out _));
        }

        Assert.NotSame(dropped, TlsContexts.TryGet(Key("dropped"), out _));
        Assert.False(dropped!.IsClosed, "a handshake that has just fetched the context must go on undisturbed");
    }

    /// <summary>
    /// SslStream's certificate contexts do the same. Otherwise a server with many names would lose the tickets of the least used.
    /// </summary>
    [Fact]
    public void A_certificate_keeps_its_context_however_many_others_there_are()
    {
        TlsContextKey key = Key("") with { IsServer = true, Flags = ContextFlags.None, Certificate = Certificates.EcdsaContext };
        SafeTlsContextHandle? first = TlsContexts.TryGet(key, out _);
        Assert.NotNull(first);

        for (int i = 0; i < 2 * TlsContexts.Capacity; i++)
        {
            SslStreamCertificateContext other = SslStreamCertificateContext.Create(Certificates.Ecdsa, null, offline: true);
            Assert.NotNull(TlsContexts.TryGet(key with { Certificate = other }, out _));
        }

        Assert.Same(first, TlsContexts.TryGet(key, out _));
    }

    /// <summary>The context is released with the certificate's context.</summary>
    [Fact]
    public void A_certificate_that_is_gone_leaves_no_context_behind()
    {
        WeakReference context = Use();
        for (int i = 0; i < 10 && context.IsAlive; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        Assert.False(context.IsAlive, "something keeps the context");

        [MethodImpl(MethodImplOptions.NoInlining)]
        static WeakReference Use()
        {
            TlsContextKey key = Key("") with
            {
                IsServer = true,
                Flags = ContextFlags.None,
                Certificate = SslStreamCertificateContext.Create(Certificates.Ecdsa, null, offline: true),
            };
            return new WeakReference(TlsContexts.TryGet(key, out _));
        }
    }

    /// <summary>The native tests show that tickets of the previous key still resume.</summary>
    [Fact]
    public void A_server_s_ticket_keys_change_every_two_hours()
    {
        TlsContextKey key = Key("tickets") with { IsServer = true };
        SafeTlsContextHandle context = TlsContexts.TryGet(key, out _)!;
        Clock clock = new();
        TlsContexts.Entry entry = new(key, context, clock);

        clock.Advance(TimeSpan.FromMinutes(119));
        Assert.False(entry.RotateTicketKeysIfDue());
        clock.Advance(TimeSpan.FromMinutes(1));
        Assert.True(entry.RotateTicketKeysIfDue());
        Assert.False(entry.RotateTicketKeysIfDue());
        clock.Advance(TimeSpan.FromHours(2));
        Assert.True(entry.RotateTicketKeysIfDue());
    }

    [Fact]
    public void What_OpenSSL_refuses_has_a_reason_and_is_not_kept()
    {
        TlsContextKey key = Key("refused") with { CipherList = "NO-SUCH-CIPHER" };

        Assert.Null(TlsContexts.TryGet(key, out KtlsFallbackReason reason));
        Assert.Equal(KtlsFallbackReason.OpenSslRefusedOptions, reason);
        Assert.Null(TlsContexts.TryGet(key, out reason));
        Assert.Equal(KtlsFallbackReason.OpenSslRefusedOptions, reason);
    }

    [Fact]
    public void A_certificate_s_key_is_found_for_RSA_and_for_ECDSA()
    {
        foreach (var certificate in new[] { Certificates.EcdsaContext, Certificates.RsaContext, Certificates.ChainedContext })
        {
            TlsContextKey key = Key("") with { IsServer = true, Flags = ContextFlags.None, Certificate = certificate };
            Assert.NotNull(TlsContexts.TryGet(key, out _));
        }
    }

    private static TlsContextKey Key(string name) => new(
        IsServer: false,
        ContextFlags.VerifyPeer,
        0x0303,
        0x0304,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuites: null,
        name.Length == 0 ? "" : (char)name.Length + name,
        SignatureAlgorithms: null,
        Certificate: null);

    private sealed class Clock : TimeProvider
    {
        private long _ticks;

        public override long TimestampFrequency => TimeSpan.TicksPerSecond;

        public override long GetTimestamp() => _ticks;

        public void Advance(TimeSpan time) => _ticks += time.Ticks;
    }
}
