using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Routing;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Implements the routes of the tests' server.</summary>
internal static class Endpoints
{
    public static void Map(IEndpointRouteBuilder routes)
    {
        routes.MapGet("/connection", (HttpContext context) => context.Connection.Id);
        routes.MapGet("/bytes/{count:long}", async (HttpContext context, long count) =>
        {
            context.Response.ContentLength = count;
            await Pattern.SendAsync(context.Response.Body, count);
        });
        routes.MapGet("/chunked/{count:int}", async (HttpContext context, int count) =>
        {
            for (int sent = 0; sent < count;)
            {
                ReadOnlyMemory<byte> part = Pattern.At(sent, Math.Min(5_000, count - sent));
                await context.Response.Body.WriteAsync(part);
                await context.Response.Body.FlushAsync();
                sent += part.Length;
            }
        });
        routes.MapMethods("/check", [HttpMethods.Post, HttpMethods.Put], async (HttpContext context) =>
        {
            long count = 0;
            byte[] buffer = new byte[64 * 1024];
            for (int read; (read = await context.Request.Body.ReadAsync(buffer)) > 0; count += read)
            {
                Pattern.AssertAt(count, buffer.AsSpan(0, read));
            }

            return $"{count} {context.Request.Protocol}";
        });
        routes.MapGet("/features", Describe);
        routes.MapGet("/host", (HttpContext context) => context.Features.GetRequiredFeature<ITlsHandshakeFeature>().HostName);
        routes.MapGet("/offload", (HttpContext context) => context.Features.Get<IKtlsFeature>()?.Offload.ToString() ?? "stock");
        routes.MapGet("/certificate", async (HttpContext context) =>
            (await context.Connection.GetClientCertificateAsync(context.RequestAborted))?.Subject ?? "none");
        routes.MapPost("/ask/{when}", async (HttpContext context, string when, ILoggerFactory loggers) =>
        {
            if (when == "after")
            {
                await context.Request.Body.CopyToAsync(Stream.Null);
            }

            try
            {
                return (await context.Connection.GetClientCertificateAsync())?.Subject ?? "none";
            }
            catch (Exception e)
            {
                loggers.CreateLogger("ask").Log(LogLevel.Debug, default, e, e, static (failure, _) => failure.GetType().Name);
                return e.GetType().Name;
            }
        });
        routes.MapGet("/abort", (HttpContext context) => context.Abort());
        routes.MapGet("/wait", async (HttpContext context) =>
        {
            Waiting waiting = WaitingOf(context);
            waiting.Begun.TrySetResult();
            try
            {
                await Task.Delay(Timeout.Infinite, context.RequestAborted);
            }
            catch (OperationCanceledException)
            {
                waiting.Aborted.TrySetResult();
            }
        });
        routes.MapGet("/finish", async (HttpContext context) =>
        {
            Waiting waiting = WaitingOf(context);
            waiting.Begun.TrySetResult();
            await waiting.GoOn;
            return "finished";
        });
        routes.MapPost("/slow", async (HttpContext context) =>
        {
            Waiting waiting = WaitingOf(context);
            waiting.Begun.TrySetResult();

            // Longer than the time after which the server watches the client.
            await waiting.HeartbeatsAsync(5);
            using StreamReader reader = new(context.Request.Body);
            string body = await reader.ReadToEndAsync();
            return $"{body.Length} {string.Concat(body.Distinct())}";
        });
    }

    private static Waiting WaitingOf(HttpContext context)
    {
        Waiting waiting = context.RequestServices.GetRequiredService<Waiting>();
        context.Features.Get<IConnectionHeartbeatFeature>()?.OnHeartbeat(static w => ((Waiting)w).OnHeartbeat(), waiting);
        return waiting;
    }

    private static string Describe(HttpContext context)
    {
        IFeatureCollection features = context.Features;
        ITlsHandshakeFeature handshake = features.GetRequiredFeature<ITlsHandshakeFeature>();
        return string.Join('\n',
            context.Request.Scheme,
            handshake.Protocol,
            handshake.NegotiatedCipherSuite,
            System.Text.Encoding.ASCII.GetString(features.GetRequiredFeature<ITlsApplicationProtocolFeature>().ApplicationProtocol.Span),
            features.GetRequiredFeature<ITlsConnectionFeature>().ClientCertificate?.Subject ?? "none",
            features.GetRequiredFeature<ISslStreamFeature>().SslStream.SslProtocol == SslProtocols.None ? "no stream" : "stream",
            features.GetRequiredFeature<IConnectionSocketFeature>().Socket.Connected ? "connected" : "not connected",
            context.Connection.RemoteIpAddress,
            context.Connection.LocalPort == 0 ? "no port" : "port");
    }

    /// <summary>Represents a request that a test waits for.</summary>
    internal sealed class Waiting
    {
        private readonly List<(int At, TaskCompletionSource Reached)> _waiters = [];
        private int _heartbeats;

        public TaskCompletionSource Begun { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public Task GoOn { get; init; } = Task.CompletedTask;

        public TaskCompletionSource Aborted { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        /// <summary>
        /// Waits for heartbeats of Kestrel (one per second) on the request's connection, which must have them. At the third the
        /// server knows that no read is pending.
        /// </summary>
        public async Task HeartbeatsAsync(int count)
        {
            TaskCompletionSource reached = new(TaskCreationOptions.RunContinuationsAsynchronously);
            lock (_waiters)
            {
                _waiters.Add((_heartbeats + count, reached));
            }

            await reached.Task.InTime($"{count} heartbeats of Kestrel");
        }

        internal void OnHeartbeat()
        {
            lock (_waiters)
            {
                _heartbeats++;
                foreach ((_, TaskCompletionSource reached) in _waiters.Where(w => w.At <= _heartbeats))
                {
                    reached.TrySetResult();
                }
            }
        }
    }
}
