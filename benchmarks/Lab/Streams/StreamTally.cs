namespace KernelTls.Lab.Streams;

/// <summary>What counted on one connection, or on all.</summary>
internal sealed class StreamTally
{
    public long BytesRead { get; set; }

    public long BytesWritten { get; set; }

    public long RoundTrips { get; set; }

    /// <summary>In ticks of Stopwatch.</summary>
    public List<long> Handshakes { get; } = [];

    public void Add(StreamTally other)
    {
        BytesRead += other.BytesRead;
        BytesWritten += other.BytesWritten;
        RoundTrips += other.RoundTrips;
        Handshakes.AddRange(other.Handshakes);
    }
}
