namespace KernelTls.LoadTest.Streams;

/// <summary>Represents the counted operations of one connection or of all connections.</summary>
internal sealed class StreamTally
{
    public long BytesRead { get; set; }

    public long BytesWritten { get; set; }

    public long RoundTrips { get; set; }

    /// <summary>Gets the durations of the handshakes, in ticks of Stopwatch.</summary>
    public List<long> Handshakes { get; } = [];

    public void Add(StreamTally other)
    {
        BytesRead += other.BytesRead;
        BytesWritten += other.BytesWritten;
        RoundTrips += other.RoundTrips;
        Handshakes.AddRange(other.Handshakes);
    }
}
