using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using KernelTls.Interop;

namespace KernelTls.UnitTests;

// native/ktls_export.h on a 64-bit platform: int32_t 4, int64_t, intptr_t and pointers 8, natural alignment.
public class NativeTypesTests
{
    [Fact]
    public void A_result_has_the_header_s_layout()
    {
        // status 0, sysErrno 4, bytes 8, openSslError 16, reason 24, pending 28, keyUpdate 32, newSession 36.
        Assert.Equal(48, Unsafe.SizeOf<NativeResult>());
        Assert.Equal(4, Offset<NativeResult>(nameof(NativeResult.SysErrno)));
        Assert.Equal(8, Offset<NativeResult>(nameof(NativeResult.Bytes)));
        Assert.Equal(16, Offset<NativeResult>(nameof(NativeResult.OpenSslError)));
        Assert.Equal(24, Offset<NativeResult>(nameof(NativeResult.Reason)));
        Assert.Equal(40, Offset<NativeResult>(nameof(NativeResult.Messages)));
    }

    [Fact]
    public void A_result_s_flags_are_read_where_the_header_has_them()
    {
        int[] words = new int[10];
        words[7] = 1;
        ref NativeResult pending = ref Unsafe.As<int, NativeResult>(ref words[0]);
        Assert.True(pending.Pending);
        Assert.False(pending.KeyUpdateDue);

        words[7] = 0;
        words[8] = 1;
        Assert.False(pending.Pending);
        Assert.True(pending.KeyUpdateDue);
        Assert.False(pending.NewSession);

        words[8] = 0;
        words[9] = 1;
        Assert.False(pending.KeyUpdateDue);
        Assert.True(pending.NewSession);
    }

    [Fact]
    public void Library_information_has_the_header_s_layout()
    {
        // openSslVersion 0, capabilities 8, versionText 12, soName 140, missingSymbol 204, 4 bytes unused: 272.
        Assert.Equal(272, Unsafe.SizeOf<LibraryInfo>());
        Assert.Equal(12, Offset<LibraryInfo>(nameof(LibraryInfo.VersionText)));
        Assert.Equal(140, Offset<LibraryInfo>(nameof(LibraryInfo.SoName)));
        Assert.Equal(204, Offset<LibraryInfo>(nameof(LibraryInfo.MissingSymbol)));
    }

    [Fact]
    public void A_blob_has_the_header_s_layout()
    {
        // data 0, length 8, reserved 12: 16.
        Assert.Equal(16, Unsafe.SizeOf<Blob>());
        Assert.Equal(8, Offset<Blob>(nameof(Blob.Length)));
    }

    [Fact]
    public void Context_options_have_the_header_s_layout()
    {
        // four int32 0 to 15, cipherList 16, cipherSuites 24, alpn 32, alpnLength 40, certificateCount 44,
        // certificates 48, privateKey 56, sessionIdContext 64, sessionIdContextLength 72, clientCaCount 76, clientCas 80,
        // signatureAlgorithms 88, keyLog 96: 104.
        Assert.Equal(104, Unsafe.SizeOf<ContextOptions>());
        Assert.Equal(16, Offset<ContextOptions>(nameof(ContextOptions.CipherList)));
        Assert.Equal(40, Offset<ContextOptions>(nameof(ContextOptions.AlpnLength)));
        Assert.Equal(44, Offset<ContextOptions>(nameof(ContextOptions.CertificateCount)));
        Assert.Equal(48, Offset<ContextOptions>(nameof(ContextOptions.Certificates)));
        Assert.Equal(56, Offset<ContextOptions>(nameof(ContextOptions.PrivateKey)));
    }

    [Fact]
    public void Connection_information_has_the_header_s_layout()
    {
        // seven int32 0 to 27, alpn 28, serverName 284, four int32 544 to 559: 560.
        Assert.Equal(560, Unsafe.SizeOf<ConnectionInfo>());
        Assert.Equal(28, Offset<ConnectionInfo>(nameof(ConnectionInfo.Alpn)));
        Assert.Equal(284, Offset<ConnectionInfo>(nameof(ConnectionInfo.ServerName)));
    }

    [Fact]
    public void A_client_hello_and_a_session_have_the_header_s_layout()
    {
        // three int32 0 to 11, versions 12, serverName 268: 528.
        Assert.Equal(528, Unsafe.SizeOf<ClientHelloData>());
        Assert.Equal(12, Offset<ClientHelloData>(nameof(ClientHelloData.Versions)));
        Assert.Equal(268, Offset<ClientHelloData>(nameof(ClientHelloData.ServerName)));
        Assert.Equal(32, Unsafe.SizeOf<SessionInfo>());
        Assert.Equal(8, Offset<SessionInfo>(nameof(SessionInfo.CreatedSeconds)));
    }

    [Fact]
    public void Socket_information_has_the_header_s_layout()
    {
        // four int32 0 to 15: 16.
        Assert.Equal(16, Unsafe.SizeOf<SocketInfo>());
        Assert.Equal(12, Offset<SocketInfo>(nameof(SocketInfo.Cipher)));
    }

    [Fact]
    public void A_kernel_probe_has_the_header_s_layout()
    {
        // ulpErrno 0, send[2][4] 4, receive[2][4] 36, four int32 68 to 83: 84.
        Assert.Equal(84, Unsafe.SizeOf<KernelProbe>());
        Assert.Equal(4, Offset<KernelProbe>(nameof(KernelProbe.Send)));
        Assert.Equal(36, Offset<KernelProbe>(nameof(KernelProbe.Receive)));
        Assert.Equal(68, Offset<KernelProbe>(nameof(KernelProbe.RekeySendErrno)));
        Assert.Equal(80, Offset<KernelProbe>(nameof(KernelProbe.ZeroCopyErrno)));
    }

    [Theory]
    [InlineData("abc\0def", "abc")]
    [InlineData("\0", "")]
    [InlineData("", "")]
    [InlineData("no end", "no end")]
    public void A_text_ends_at_the_first_NUL(string bytes, string expected) =>
        Assert.Equal(expected, NativeText.Decode(System.Text.Encoding.UTF8.GetBytes(bytes)));

    private static int Offset<T>(string field) => (int)Marshal.OffsetOf<T>(field);
}
