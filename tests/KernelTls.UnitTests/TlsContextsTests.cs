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

    /// <summary>That what the key before has sealed still resumes is the native tests' to show.</summary>
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
