using KernelTls.Bench.Servers;
using KernelTls.Tests;
using Npgsql;

namespace KernelTls.Bench.Scenarios;

/// <summary>Copies a table of 1 MiB out of PostgreSQL with Npgsql, again and again on one connection.</summary>
internal sealed class PostgresCopy(string mode) : LibraryScenario(mode, typeof(NpgsqlConnection).Assembly)
{
    private const int Rows = 1024;
    private const int RowSize = 1024;
    private const int LargestRead = 64 * 1024;

    // What the binary format adds: the number of columns and the length of the value in each row, and the signature,
    // flags and end of the file.
    private const int RowOverhead = 6;
    private const int FileOverhead = 21;
    private const long Size = Rows * (RowSize + RowOverhead) + FileOverhead;

    private const string Cipher = "TLSv1.3 TLS_AES_256_GCM_SHA384";

    private readonly byte[] _buffer = new byte[LargestRead];
    private NpgsqlDataSource? _source;
    private NpgsqlConnection? _connection;

    public override int OperationsPerRound => 12;

    // Rounds cost up to 16 % more until about the twentieth.
    public override int WarmUpRounds => 20;

    protected override int Connections => 1;

    public override async Task RunAsync(int operations)
    {
        for (int i = 0; i < operations; i++)
        {
            long received = 0;
            await using (NpgsqlRawCopyStream copy = await _connection!.BeginRawBinaryCopyAsync("COPY t TO STDOUT (FORMAT BINARY)"))
            {
                for (int count; (count = await copy.ReadAsync(_buffer, CancellationToken.None)) > 0;)
                {
                    received += count;
                }
            }

            if (received != Size)
            {
                throw new BenchFailedException($"{received} bytes of a table of {Size}");
            }
        }
    }

    public override async ValueTask DisposeAsync()
    {
        if (_source is { } source)
        {
            await (_connection?.DisposeAsync() ?? default);
            await source.DisposeAsync();
        }

        await base.DisposeAsync();
    }

    protected override Task<ServerProcess> StartServerAsync() => LibraryServers.StartPostgresAsync(Files);

    protected override async Task ConnectAsync(int port)
    {
        NpgsqlConnectionStringBuilder settings = new()
        {
            Host = "127.0.0.1",
            Port = port,
            Username = PostgresProgram.Owner,
            Password = PostgresProgram.Password,
            Database = "postgres",
            SslMode = SslMode.VerifyCA,
            RootCertificate = BenchCertificates.AuthorityPathIn(Files.FullName),
        };
        _source = NpgsqlDataSource.Create(settings);
        _connection = await _source.OpenConnectionAsync();
        await using NpgsqlCommand create = new(
            $"CREATE TEMPORARY TABLE t AS SELECT repeat('x', {RowSize}) AS value FROM generate_series(1, {Rows})", _connection);
        _ = await create.ExecuteNonQueryAsync();
        await using NpgsqlCommand ask = new("SELECT version || ' ' || cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()", _connection);
        if (await ask.ExecuteScalarAsync() is var cipher and not Cipher)
        {
            throw new BenchFailedException($"the server reports {cipher}, not {Cipher}");
        }
    }
}
