using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tool.Benching;

/// <summary>Represents one operation on a connection, which is repeated.</summary>
internal abstract class BenchRow
{
    /// <summary>Gets the names of the rows, which --row accepts.</summary>
    public static IReadOnlyList<string> Names { get; } = ["handshake", "ping-64", "get-64k", "file-4m"];

    public required string Name { get; init; }

    /// <summary>Gets the description of the operation.</summary>
    public required string Description { get; init; }

    /// <summary>Gets a value that indicates whether each operation opens its own connection.</summary>
    public virtual bool Connects => false;

    public static BenchRow Create(string name, SafeFileHandle file) => name switch
    {
        "handshake" => new Handshake { Name = name, Description = "connect, full handshake, 1 byte, close" },
        "ping-64" => new Exchange(64, 64) { Name = name, Description = "64 bytes there and back" },
        "get-64k" => new Exchange(64, 64 * 1024) { Name = name, Description = "64 bytes there, 64 KiB back" },
        "file-4m" => new FileTransfer(file) { Name = name, Description = "a file of 4 MiB (SendFileAsync, or read and write)" },
        _ => throw new ArgumentOutOfRangeException(nameof(name), name, $"Expected one of {string.Join(", ", Names)}."),
    };

    public abstract Task RunAsync(BenchPair pair, CancellationToken cancellationToken);

    private sealed class Handshake : BenchRow
    {
        private readonly byte[] _one = new byte[1];

        public override bool Connects => true;

        public override async Task RunAsync(BenchPair pair, CancellationToken cancellationToken)
        {
            await pair.Server.WriteAsync(new byte[1], cancellationToken);
            await pair.Client.ReadExactlyAsync(_one, cancellationToken);
        }
    }

    private sealed class Exchange(int request, int response) : BenchRow
    {
        private readonly byte[] _asked = new byte[request];
        private readonly byte[] _heard = new byte[request];
        private readonly byte[] _answer = new byte[response];
        private readonly byte[] _received = new byte[response];

        public override async Task RunAsync(BenchPair pair, CancellationToken cancellationToken)
        {
            await pair.Client.WriteAsync(_asked, cancellationToken);
            await pair.Server.ReadExactlyAsync(_heard, cancellationToken);
            Task answering = pair.Server.WriteAsync(_answer, cancellationToken).AsTask();
            await pair.Client.ReadExactlyAsync(_received, cancellationToken);
            await answering;
        }
    }

    private sealed class FileTransfer(SafeFileHandle file) : BenchRow
    {
        private readonly byte[] _buffer = new byte[64 * 1024];
        private readonly byte[] _received = new byte[256 * 1024];

        public override async Task RunAsync(BenchPair pair, CancellationToken cancellationToken)
        {
            long length = RandomAccess.GetLength(file);
            Task sending = SendAsync(pair, length, cancellationToken);
            for (long left = length; left > 0;)
            {
                int count = await pair.Client.ReadAsync(_received, cancellationToken);
                left = count > 0 ? left - count : throw new IOException("The connection ended before the file was complete.");
            }

            await sending;
        }

        private async Task SendAsync(BenchPair pair, long length, CancellationToken cancellationToken)
        {
            if (pair.Server is KtlsStream ktls)
            {
                await ktls.SendFileAsync(file, 0, length, cancellationToken);
                return;
            }

            for (long offset = 0; offset < length;)
            {
                int count = await RandomAccess.ReadAsync(file, _buffer, offset, cancellationToken);
                await pair.Server.WriteAsync(_buffer.AsMemory(0, count), cancellationToken);
                offset += count;
            }
        }
    }
}
