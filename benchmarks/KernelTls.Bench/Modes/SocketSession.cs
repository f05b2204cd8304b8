using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;

namespace KernelTls.Bench.Modes;

/// <summary>
/// Wraps a TlsSocketSession of .NET 11, which runs OpenSSL on the socket without kernel TLS. This program targets .NET
/// 10, which does not have this type. The members are therefore bound by name, once for each connection.
/// </summary>
internal sealed class SocketSession : IDisposable
{
    /// <summary>Specifies the values of TlsOperationStatus that can occur here.</summary>
    public enum Status
    {
        Complete = 0,
        NeedMoreData = 2,
        Closed = 3,
        NeedsCertificateValidation = 5,
    }

    private delegate Status Operation();

    private delegate Status Receive(Span<byte> buffer, out int count);

    private delegate Status Send(ReadOnlySpan<byte> buffer, out int count);

    private static readonly Type? s_context = typeof(SslStream).Assembly.GetType("System.Net.Security.TlsContext");
    private static readonly Type? s_session = typeof(SslStream).Assembly.GetType("System.Net.Security.TlsSocketSession");

    private readonly IDisposable _session;
    private readonly Operation _handshake;
    private readonly Operation _shutdown;
    private readonly Receive _read;
    private readonly Send _write;

    /// <param name="socket">The socket. It is disposed with the session.</param>
    /// <param name="context">A context from <see cref="CreateContext"/>.</param>
    public SocketSession(Socket socket, object context)
    {
        _session = (IDisposable)Activator.CreateInstance(s_session!, socket.SafeHandle)!;
        Method("SetContext").Invoke(_session, [context]);
        _handshake = Bind<Operation>("Handshake");
        _shutdown = Bind<Operation>("Shutdown");
        _read = Bind<Receive>("Read");
        _write = Bind<Send>("Write");
    }

    public static bool IsSupported => s_context is not null && s_session is not null;

    public TlsCipherSuite CipherSuite => (TlsCipherSuite)s_session!.GetProperty("NegotiatedCipherSuite")!.GetValue(_session)!;

    /// <summary>Creates the state that connections with these options share, including sessions to resume.</summary>
    /// <param name="options">The client or server options of SslStream.</param>
    public static object CreateContext(object options)
    {
        string factory = options is SslServerAuthenticationOptions ? "CreateServer" : "CreateClient";
        return s_context!.GetMethod(factory, [options.GetType()])!.Invoke(null, [options])!;
    }

    public Status Handshake() => _handshake();

    /// <summary>Validates the peer's certificate as the options require.</summary>
    public void ValidatePeer()
    {
        object? errors = Method("AcceptWithDefaultValidation").Invoke(_session, null);
        if (!SslPolicyErrors.None.Equals(errors))
        {
            throw new BenchFailedException($"tlssession does not accept the server's certificate: {errors}");
        }
    }

    public Status Read(Span<byte> buffer, out int count) => _read(buffer, out count);

    public Status Write(ReadOnlySpan<byte> buffer, out int count) => _write(buffer, out count);

    public Status Shutdown() => _shutdown();

    public void Dispose() => _session.Dispose();

    private static MethodInfo Method(string name) => s_session!.GetMethod(name)!;

    private TDelegate Bind<TDelegate>(string name)
        where TDelegate : Delegate => Method(name).CreateDelegate<TDelegate>(_session);
}
