using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests that a namespace keeps its threads to itself. A thread is created in the namespace of its creator: if the socket
/// engine's is, so are the threads that it adds to the pool, and later tests connect to a loopback without listeners.
/// </summary>
public class NetworkNamespaceTests : KernelTest
{
    private const int Added = 8;

    [Fact]
    public async Task Work_and_programs_are_in_the_namespace_and_other_threads_are_not()
    {
        using NetworkNamespace network = new();
        ThreadPool.GetMinThreads(out int workers, out int completionPorts);
        try
        {
            // More than there are, so that the thread that queues work creates them.
            Assert.True(ThreadPool.SetMinThreads(ThreadPool.ThreadCount + Added, completionPorts));
            await Task.WhenAll(Enumerable.Range(0, 2 * Added).Select(_ => UseAsync(network))).InTime();
        }
        finally
        {
            ThreadPool.SetMinThreads(workers, completionPorts);
        }

        Assert.Empty(NetworkNamespace.StrayThreads());
    }

    private static async Task UseAsync(NetworkNamespace network)
    {
        string ofWork = await network.RunAsync(NetworkNamespace.OfThread);
        string ofProgram = await network.CaptureAsync("readlink", "/proc/self/ns/net");

        Assert.NotEqual(NetworkNamespace.OfThread(), ofWork);
        Assert.Equal(ofWork, ofProgram.TrimEnd());
    }
}
