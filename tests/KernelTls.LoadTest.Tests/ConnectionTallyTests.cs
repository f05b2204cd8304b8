using System.Net.Security;
using System.Security.Authentication;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Tests;

public class ConnectionTallyTests
{
    private static readonly KtlsOffload s_kernel =
        new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None);

    private readonly ConnectionTally _tally = new();

    [Fact]
    public void A_run_s_connections_are_told_until_the_next_one_begins()
    {
        Open(s_kernel, 3);
        End(3);
        Look(3);
        Assert.Equal((3, 3, "send=kernel receive=kernel"), Told);

        Open(null, 1);
        Assert.Equal((1, 0, ConnectionTally.Stock), Told);
    }

    [Fact]
    public void While_a_connection_is_open_the_run_goes_on()
    {
        Open(s_kernel, 2);
        End(1);
        Look(3);
        Open(null, 1);
        Assert.Equal((3, 2, "2 x send=kernel receive=kernel; 1 x stock"), Told);
    }

    [Fact]
    public void Connections_that_follow_each_other_at_once_are_one_run()
    {
        for (int i = 1; i <= 3; i++)
        {
            Open(s_kernel, 1);
            End(1);
            Look(1);
            Assert.Equal(i, Told.Connections);
        }
    }

    private (long Connections, long InKernel, string Offload) Told
    {
        get
        {
            Results results = new();
            _tally.AddTo(results);
            return ((long)results.ValueOf(Metrics.Connections), (long)results.ValueOf(Metrics.KernelConnections), (string)results.ValueOf(Metrics.Offload));
        }
    }

    private void Open(KtlsOffload? offload, int count) =>
        Repeat(count, () => _tally.Add(offload, SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384));

    private void End(int count) => Repeat(count, _tally.End);

    private void Look(int count) => Repeat(count, _tally.Look);

    private static void Repeat(int count, Action action)
    {
        for (int i = 0; i < count; i++)
        {
            action();
        }
    }
}
