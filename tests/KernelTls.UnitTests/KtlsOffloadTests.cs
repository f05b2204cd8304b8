namespace KernelTls.UnitTests;

public class KtlsOffloadTests
{
    [Fact]
    public void The_text_names_each_path_and_each_reason() =>
        Assert.Equal(
            "send=kernel receive=openssl (OpenSslTooOld)",
            new KtlsOffload(
                KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.OpenSsl, KtlsFallbackReason.OpenSslTooOld).ToString());

    [Fact]
    public void A_network_device_counts_as_offloaded()
    {
        KtlsOffload offload = new(KtlsDataPath.Hardware, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None);

        Assert.True(offload.IsComplete);
        Assert.Equal("send=hardware receive=kernel", offload.ToString());
    }

    [Fact]
    public void A_managed_connection_has_one_reason_for_both_directions()
    {
        KtlsOffload offload = KtlsOffload.Managed(KtlsFallbackReason.NotSocketStream);

        Assert.False(offload.IsComplete);
        Assert.Equal("send=managed (NotSocketStream) receive=managed (NotSocketStream)", offload.ToString());
    }

    [Fact]
    public void One_direction_in_the_kernel_is_not_complete() =>
        Assert.False(new KtlsOffload(
            KtlsDataPath.OpenSsl, KtlsFallbackReason.KernelRefused, KtlsDataPath.Kernel, KtlsFallbackReason.None).IsComplete);
}
