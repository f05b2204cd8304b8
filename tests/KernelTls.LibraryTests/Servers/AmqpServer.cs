using Amqp;
using Amqp.Framing;
using Amqp.Listener;
using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Represents a server of AMQP 1.0: the listener of AMQPNetLite, which is woven as well. It requires a client certificate. The answer to a
/// request is its body.
/// </summary>
internal sealed class AmqpServer : IRequestProcessor, IDisposable
{
    /// <summary>The address of the requests.</summary>
    public const string Node = "echo";

    /// <summary>The body of a request that stays without an answer.</summary>
    public static readonly byte[] Silent = "silent"u8.ToArray();

    private readonly ReservedPort _port = new();
    private ContainerHost? _host;

    public int Port => _port.Number;

    /// <summary>Gets a task that completes when the silent request has arrived.</summary>
    public TaskCompletionSource SilentArrived { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>Gets the subject of the last client's certificate.</summary>
    public string? Client { get; private set; }

    int IRequestProcessor.Credit => 50;

    public void Start()
    {
        _host = new ContainerHost([new Address($"amqps://127.0.0.1:{Port}")], Certificates.Ecdsa);
        _host.Listeners[0].SSL.ClientCertificateRequired = true;
        _host.Listeners[0].SSL.RemoteCertificateValidationCallback = (_, certificate, _, errors) =>
        {
            Client = certificate?.Subject;
            return errors == System.Net.Security.SslPolicyErrors.None;
        };
        _host.RegisterRequestProcessor(Node, this);
        _host.Open();
    }

    public void Stop() => _host?.Close();

    public void Dispose()
    {
        Stop();
        _port.Dispose();
    }

    void IRequestProcessor.Process(RequestContext requestContext)
    {
        byte[] body = requestContext.Message.GetBody<byte[]>();
        if (body.AsSpan().SequenceEqual(Silent))
        {
            SilentArrived.TrySetResult();
        }
        else
        {
            requestContext.Complete(new Message { BodySection = new Data { Binary = body } });
        }
    }
}
