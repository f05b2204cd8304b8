using System.Security.Cryptography;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.Demo;

/// <summary>Represents the served file: its length when it was opened, and the hash of these bytes.</summary>
internal sealed class PublishedFile : IDisposable
{
    private PublishedFile(string path, SafeFileHandle handle, long length, string sha256)
    {
        Path = path;
        Handle = handle;
        Length = length;
        Sha256 = sha256;
    }

    public string Path { get; }

    public SafeFileHandle Handle { get; }

    public long Length { get; }

    /// <summary>Gets the hash in lower-case hexadecimal, as sha256sum prints it.</summary>
    public string Sha256 { get; }

    public static async Task<PublishedFile> OpenAsync(string path, CancellationToken cancellationToken)
    {
        SafeFileHandle handle = Open(path);
        try
        {
            long length = RandomAccess.GetLength(handle);
            return new PublishedFile(path, handle, length, await HashAsync(path, handle, length, cancellationToken));
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    public void Dispose() => Handle.Dispose();

    private static SafeFileHandle Open(string path)
    {
        if (Directory.Exists(path))
        {
            throw new DemoFailedException($"{path} is a directory, and the demo serves one file");
        }

        try
        {
            return File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete, FileOptions.Asynchronous);
        }
        catch (Exception e) when (e is FileNotFoundException or DirectoryNotFoundException or ArgumentException)
        {
            throw new DemoFailedException($"there is no file '{path}'");
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            throw new DemoFailedException($"cannot read {path}: {e.Message}");
        }
    }

    private static async Task<string> HashAsync(string path, SafeFileHandle handle, long length, CancellationToken cancellationToken)
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        byte[] buffer = new byte[128 * 1024];
        for (long offset = 0; offset < length;)
        {
            Memory<byte> window = buffer.AsMemory(0, (int)Math.Min(buffer.Length, length - offset));
            int read = await RandomAccess.ReadAsync(handle, window, offset, cancellationToken);
            if (read == 0)
            {
                throw new DemoFailedException($"{path} became shorter while it was read");
            }

            hash.AppendData(window.Span[..read]);
            offset += read;
        }

        return Convert.ToHexStringLower(hash.GetHashAndReset());
    }
}
