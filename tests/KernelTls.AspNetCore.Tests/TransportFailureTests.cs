using System.Diagnostics;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests connections whose transport cannot be created after the handshake.</summary>
public class TransportFailureTests
{
    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_transport_that_could_not_be_created_is_collected(TlsMode mode)
    {
        FailingHeartbeat heartbeat = new();
        await using Server server = await Server.StartAsync(mode, listen: endpoint => endpoint.Use(next => connection =>
        {
            connection.Features.Set<IConnectionHeartbeatFeature>(heartbeat);
            return next(connection);
        }));
        server.FailsOnPurpose = true;
        await using (SslStream client = await server.ConnectAsync(SslProtocols.Tls13))
        {
            Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the end of the connection"));
        }

        WeakReference reader = await heartbeat.Registered.InTime("the transport to register with the heartbeat");
        Stopwatch elapsed = Stopwatch.StartNew();
        while (reader.IsAlive)
        {
            Assert.True(elapsed.Elapsed < Limits.Wait, $"the transport is alive after {Limits.Wait.TotalSeconds} s");
            GC.Collect();
            await Task.Delay(20);
        }
    }

    /// <summary>Fails the registration, which is a step of the transport's constructor.</summary>
    private sealed class FailingHeartbeat : IConnectionHeartbeatFeature
    {
        private readonly TaskCompletionSource<WeakReference> _registered = new(TaskCreationOptions.RunContinuationsAsynchronously);

        /// <summary>Gets the reader of the transport, which refers to the transport.</summary>
        public Task<WeakReference> Registered => _registered.Task;

        public void OnHeartbeat(Action<object> action, object state)
        {
            _registered.TrySetResult(new WeakReference(state));
            throw new InvalidOperationException("the heartbeat fails on purpose");
        }
    }
}
