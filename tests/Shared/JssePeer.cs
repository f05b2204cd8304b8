using System.Globalization;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>Runs a Java program with JSSE, which changes keys by itself.</summary>
/// <remarks>
/// While a key has processed more bytes than <c>jdk.tls.keyLimits</c> permits, each record that JSSE reads makes it
/// send one more KeyUpdate(update_requested), until the answer arrives.
/// </remarks>
internal sealed class JssePeer : IDisposable
{
    private readonly ExternalProgram _program;

    private JssePeer(ExternalProgram program) => _program = program;

    private static readonly long? s_size =
        Environment.GetEnvironmentVariable("KERNELTLS_JSSE_BYTES") is { Length: > 0 } text
            ? long.Parse(text, CultureInfo.InvariantCulture)
            : null;

    /// <summary>The directory of the compiled program. To compile it takes longer than a transfer.</summary>
    private static readonly Lazy<Task<string>> s_classes = new(CompileAsync);

    /// <summary>Gets the time limit of one transfer.</summary>
    public static TimeSpan Limit { get; } = Limits.Wait + TimeSpan.FromSeconds((s_size ?? 0) / (4 << 20));

    /// <summary>
    /// Returns the number of bytes of a transfer, which exceeds the key limit. KERNELTLS_JSSE_BYTES sets the number for
    /// longer runs.
    /// </summary>
    public static long SizeFor(string keyLimit) => s_size ?? (keyLimit == "2^20" ? 32 : 48) << 20;

    /// <summary>Starts a client that connects to <paramref name="port"/>.</summary>
    public static async Task<JssePeer> ConnectAsync(int port, string keyLimit) => new(await StartAsync("client", port, keyLimit));

    /// <summary>Starts a server, and waits until it listens.</summary>
    public static async Task<JssePeer> ListenAsync(int port, string keyLimit, X509Certificate2 certificate, TemporaryDirectory directory)
    {
        string store = directory["store.p12"];
        await File.WriteAllBytesAsync(store, certificate.Export(X509ContentType.Pkcs12, ""));
        ExternalProgram program = await StartAsync("server", port, keyLimit, store);
        await program.ErrorsContain("listening");
        return new JssePeer(program);
    }

    /// <summary>Runs a command and returns its answer.</summary>
    public async Task<string> RunAsync(string command)
    {
        await _program.SayAsync(command);
        return (await _program.OutputUpToAsync("\n", Limit)).TrimEnd();
    }

    /// <summary>Makes the program close the connection, and waits until it exits successfully.</summary>
    public async Task CloseAsync()
    {
        await _program.SayAsync("close");
        Assert.Equal("closed\n", await _program.SucceedAsync());
    }

    /// <summary>
    /// Returns the digest of the first <paramref name="count"/> bytes of <see cref="Pattern"/>, as printed by the
    /// program.
    /// </summary>
    public static string DigestOfPattern(long count)
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        for (long done = 0; done < count;)
        {
            ReadOnlySpan<byte> part = Pattern.At(done, (int)Math.Min(1 << 20, count - done)).Span;
            hash.AppendData(part);
            done += part.Length;
        }

        return Convert.ToHexString(hash.GetHashAndReset());
    }

    /// <summary>Reads <paramref name="count"/> bytes and returns their digest, as printed by the program.</summary>
    public static async Task<string> DigestOfAsync(Stream from, long count)
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        byte[] buffer = new byte[64 * 1024];
        for (long done = 0; done < count;)
        {
            int read = await from.ReadAsync(buffer.AsMemory(0, (int)Math.Min(buffer.Length, count - done)));
            Assert.True(read > 0, $"The stream ended at {done} of {count} bytes.");
            hash.AppendData(buffer, 0, read);
            done += read;
        }

        return Convert.ToHexString(hash.GetHashAndReset());
    }

    public void Dispose() => _program.Dispose();

    private static async Task<ExternalProgram> StartAsync(string role, int port, string keyLimit, params string[] more) =>
        ExternalProgram.Start(
            "java",
            null,
            [
                "-XX:+UseSerialGC", "-Xmx256m", "-cp", await s_classes.Value, "Peer", role,
                port.ToString(CultureInfo.InvariantCulture), keyLimit, .. more,
            ]);

    private static async Task<string> CompileAsync()
    {
        TemporaryDirectory classes = new();
        AppDomain.CurrentDomain.ProcessExit += (_, _) => classes.Dispose();
        using ExternalProgram compiler = ExternalProgram.Start(
            "java", null, "-XX:TieredStopAtLevel=1", "--module", "jdk.compiler/com.sun.tools.javac.Main", "-d", classes.FullName,
            Path.Combine(AppContext.BaseDirectory, "Jsse", "Peer.java"));
        await compiler.SucceedAsync();
        return classes.FullName;
    }
}
