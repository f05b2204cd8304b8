namespace KernelTls.LoadTest.Report;

/// <summary>Defines all figures. Figures that exist in the reference scenarios have the same names as there.</summary>
internal static class Metrics
{
    public static Metric Requests { get; } =
        new("http/requests", Operation.Sum, Operation.Sum, "Requests", "Requests that were answered", "n0");

    public static Metric RequestsPerSecond { get; } =
        new("http/rps/mean", Operation.Avg, Operation.Sum, "Mean RPS", "Requests answered per second", "n0");

    public static Metric ContentPerSecond { get; } =
        new("http/content/mean", Operation.Avg, Operation.Sum, "Content B/s", "Bytes of request and response content per second", "n0");

    public static Metric ProcessorPerRequest { get; } =
        new("process/cpu/request", Operation.Last, Operation.Avg, "CPU us/request", "Processor time of the process per request, in microseconds", "n1");

    public static Metric ProcessorPerGigabyte { get; } =
        new("process/cpu/gb", Operation.Last, Operation.Avg, "CPU s/GB", "Processor time of the process per gigabyte of content, in seconds", "n3");

    public static Metric BadResponses { get; } =
        new("http/badresponses", Operation.Sum, Operation.Sum, "Bad responses", "Answers with another status or size than expected", "n0");

    public static Metric Errors { get; } =
        new("http/errors", Operation.Sum, Operation.Sum, "Errors", "Requests without an answer", "n0");

    public static Distribution Headers { get; } = new("http/headers", "Time to response headers");

    public static Distribution ContentStart { get; } = new("http/contentstart", "Time to first response content byte");

    public static Distribution ContentEnd { get; } = new("http/contentend", "Time to last response content byte");

    public static Metric BytesRead { get; } =
        new("sslstream/read/mean", Operation.Avg, Operation.Sum, "Read B/s", "Bytes the client read per second", "n0");

    public static Metric BytesWritten { get; } =
        new("sslstream/write/mean", Operation.Avg, Operation.Sum, "Write B/s", "Bytes the client wrote per second", "n0");

    public static Metric RoundTrips { get; } =
        new("sslstream/rps/mean", Operation.Avg, Operation.Sum, "Mean RPS", "Requests answered per second", "n0");

    public static Metric Handshakes { get; } =
        new("sslstream/handshakes/mean", Operation.Avg, Operation.Sum, "Handshakes/s", "TLS handshakes per second", "n0");

    public static Distribution Handshake { get; } = new("sslstream/handshake", "TLS handshake");

    public static Metric StreamErrors { get; } =
        new("sslstream/errors", Operation.Max, Operation.Sum, "Errors", "Connections of the run that failed", "n0");

    public static Metric Connections { get; } =
        new("tls/connections", Operation.Max, Operation.Sum, "Connections", "Connections of the run, warm-up included", "n0");

    public static Metric KernelConnections { get; } =
        new("tls/connections/kernel", Operation.Max, Operation.Sum, "In the kernel", "Connections with both directions in the kernel", "n0");

    public static Metric OtherConnections { get; } =
        new("tls/connections/other", Operation.Max, Operation.Sum, "Outside the kernel", "Connections with a direction outside the kernel", "n0");

    public static Metric Offload { get; } =
        new("tls/offload", Operation.Last, Operation.First, "Offload", "What became of the connections, and why", "");

    public static Metric Negotiated { get; } =
        new("tls/negotiated", Operation.Last, Operation.First, "TLS", "Version and cipher suite of the connections", "");

    public static Metric ProcessorCount { get; } =
        new("env/processorcount", Operation.First, Operation.First, "Processor Count", "Processors that the process may use", "n0");

    public static Metric Kernel { get; } =
        new("env/kernel", Operation.First, Operation.First, "Kernel", "Release of the running kernel", "");

    public static Metric OpenSsl { get; } =
        new("env/openssl", Operation.First, Operation.First, "OpenSSL", "The OpenSSL that .NET has loaded", "");

    public static Metric Runtime { get; } =
        new("env/runtime", Operation.First, Operation.First, ".NET", "The running .NET", "");
}
