using System.Runtime.InteropServices;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

/// <summary>Alone: for a moment the whole process can open nothing.</summary>
[CollectionDefinition(nameof(SocketPollerTests), DisableParallelization = true)]
public class WithoutDescriptors;

[Collection(nameof(SocketPollerTests))]
public partial class SocketPollerTests
{
    private const int DescriptorLimit = 7; // RLIMIT_NOFILE

    [Fact]
    public void A_poller_for_which_there_was_no_descriptor_is_made_later()
    {
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);
        Assert.InRange(new SocketPoller().Descriptor, 0, int.MaxValue); // what this loads is loaded
        Assert.Equal(0, getrlimit(DescriptorLimit, out ResourceLimit usual));

        SocketPoller poller = new();
        Exception? failure;
        Assert.Equal(0, setrlimit(DescriptorLimit, usual with { Soft = 0 }));
        try
        {
            failure = Record.Exception(() => poller.Descriptor);
        }
        finally
        {
            Assert.Equal(0, setrlimit(DescriptorLimit, usual));
        }

        Assert.IsType<IOException>(failure);
        int made = poller.Descriptor;
        Assert.InRange(made, 0, int.MaxValue);
        Assert.Equal(made, poller.Descriptor);
    }

    [LibraryImport("libc")]
    private static partial int getrlimit(int resource, out ResourceLimit limit);

    [LibraryImport("libc")]
    private static partial int setrlimit(int resource, in ResourceLimit limit);

    private record struct ResourceLimit(nuint Soft, nuint Hard);
}
