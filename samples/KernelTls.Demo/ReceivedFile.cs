using System.Diagnostics;
using System.Security.Cryptography;

namespace KernelTls.Demo;

/// <summary>Receives a download: counts and hashes the bytes, and stores none.</summary>
internal sealed class ReceivedFile : IDisposable
{
    private readonly PublishedFile _original;
    private readonly ProgressLine _progress;
    private readonly IncrementalHash _hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
    private readonly Stopwatch _duration = Stopwatch.StartNew();
    private long _length;

    public ReceivedFile(PublishedFile original, ProgressLine progress)
    {
        _original = original;
        _progress = progress;
    }

    public void Append(ReadOnlySpan<byte> data)
    {
        _hash.AppendData(data);
        _length += data.Length;
        _progress.Report(_length);
    }

    /// <summary>Compares the download with the original, by length and hash.</summary>
    /// <returns>One line about the download.</returns>
    /// <exception cref="DemoFailedException">The received bytes differ from the served ones.</exception>
    public string Verify(string peer)
    {
        _duration.Stop();
        if (_length != _original.Length)
        {
            throw new DemoFailedException($"{peer} received {_length:N0} bytes of a file of {_original.Length:N0}");
        }

        string sha256 = Convert.ToHexStringLower(_hash.GetHashAndReset());
        return sha256 == _original.Sha256
            ? $"{_length:N0} bytes in {_duration.Elapsed.TotalSeconds:F1} s, SHA-256 matches"
            : throw new DemoFailedException($"{peer} received SHA-256 {sha256}, the file has {_original.Sha256}");
    }

    public void Dispose() => _hash.Dispose();
}
