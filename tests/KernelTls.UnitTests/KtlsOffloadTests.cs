using KernelTls.Offload;

namespace KernelTls.UnitTests;

[Trait("system", "any")]
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

    [Fact]
    public void Values_are_equal_if_every_property_is()
    {
        KtlsOffload[] values =
        [
            new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None),
            new(KtlsDataPath.Hardware, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None),
            new(KtlsDataPath.Kernel, KtlsFallbackReason.KernelRefused, KtlsDataPath.Kernel, KtlsFallbackReason.None),
            new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.OpenSsl, KtlsFallbackReason.None),
            new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.OpenSslTooOld),
            KtlsOffload.Managed(new EngineChoice(KtlsFallbackReason.NotSocketStream, KtlsFallbackReason.NotSocketStream)),
            KtlsOffload.Managed(new EngineChoice(KtlsFallbackReason.NotSocketStream, KtlsFallbackReason.OpenSslTooOld)),
        ];

        for (int i = 0; i < values.Length; i++)
        {
            for (int j = 0; j < values.Length; j++)
            {
                Assert.Equal(i == j, values[i] == values[j]);
                Assert.Equal(i != j, values[i] != values[j]);
                Assert.Equal(i == j, values[i].Equals((object)values[j]));
            }
        }

        Assert.False(values[0].Equals("send=kernel receive=kernel"));
    }
}
