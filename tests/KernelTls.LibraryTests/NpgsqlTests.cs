using System.Data;
using System.Data.Common;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Npgsql;

namespace KernelTls.LibraryTests;

/// <summary>Tests Npgsql with PostgreSQL.</summary>
public sealed class NpgsqlTests(PostgresServer server) : DatabaseTest("Npgsql"), IClassFixture<PostgresServer>
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Rows_are_copied_in_and_out(bool synchronously)
    {
        const int Rows = 20_000;
        await using NpgsqlDataSource source = Source();
        await using NpgsqlConnection connection = (NpgsqlConnection)await OpenAsync(source, synchronously);
        await using (NpgsqlCommand create = new("CREATE TEMPORARY TABLE t (n integer, s text)", connection))
        {
            await create.ExecuteNonQueryAsync().InTime("a table");
        }

        const string In = "COPY t FROM STDIN (FORMAT BINARY)";
        const string Out = "COPY t TO STDOUT (FORMAT BINARY)";
        Assert.Equal((ulong)Rows, synchronously ? await Limits.Blocking(CopyIn).InTime("rows in") : await CopyInAsync().InTime("rows in"));
        Assert.Equal(
            (long)Rows * (Rows - 1) / 2,
            synchronously ? await Limits.Blocking(CopyOut).InTime("rows out") : await CopyOutAsync().InTime("rows out"));

        ulong CopyIn()
        {
            using NpgsqlBinaryImporter importer = connection.BeginBinaryImport(In);
            for (int i = 0; i < Rows; i++)
            {
                importer.StartRow();
                importer.Write(i);
                importer.Write($"row {i}");
            }

            return importer.Complete();
        }

        async Task<ulong> CopyInAsync()
        {
            await using NpgsqlBinaryImporter importer = await connection.BeginBinaryImportAsync(In);
            for (int i = 0; i < Rows; i++)
            {
                await importer.StartRowAsync();
                await importer.WriteAsync(i);
                await importer.WriteAsync($"row {i}");
            }

            return await importer.CompleteAsync();
        }

        long CopyOut()
        {
            long sum = 0;
            using NpgsqlBinaryExporter exporter = connection.BeginBinaryExport(Out);
            while (exporter.StartRow() != -1)
            {
                int number = exporter.Read<int>();
                Assert.Equal($"row {number}", exporter.Read<string>());
                sum += number;
            }

            return sum;
        }

        async Task<long> CopyOutAsync()
        {
            long sum = 0;
            await using NpgsqlBinaryExporter exporter = await connection.BeginBinaryExportAsync(Out);
            while (await exporter.StartRowAsync() != -1)
            {
                int number = await exporter.ReadAsync<int>();
                Assert.Equal($"row {number}", await exporter.ReadAsync<string>());
                sum += number;
            }

            return sum;
        }
    }

    /// <summary>The library cancels through a separate connection, and the connection that waited stays usable.</summary>
    [Fact]
    public async Task A_cancelled_query_leaves_a_connection_that_works()
    {
        await using NpgsqlDataSource source = Source();
        await using NpgsqlConnection connection = (NpgsqlConnection)await OpenAsync(source);
        using CancellationTokenSource cancellation = new();
        await using NpgsqlCommand endless = new("SELECT generate_series(1, 100000000), repeat('x', 1000)", connection);
        await using (NpgsqlDataReader reader = await endless.ExecuteReaderAsync(CommandBehavior.SequentialAccess, cancellation.Token).InTime("rows"))
        {
            for (int i = 1; i <= 1000; i++)
            {
                Assert.True(await reader.ReadAsync(cancellation.Token).InTime("a row"));
                Assert.Equal(i, reader.GetInt32(0));
            }

            await cancellation.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(async () =>
            {
                while (await reader.ReadAsync(cancellation.Token))
                {
                }
            }).InTime("the cancelled read");
        }

        await CancelAsync(connection, "SELECT pg_sleep(600)");
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_client_certificate_is_the_user(bool synchronously)
    {
        using TemporaryDirectory files = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Client, files.FullName);
        await using NpgsqlDataSource source = Source(s =>
        {
            (s.Username, s.Password, s.SslCertificate, s.SslKey) = ("a client", null, certificate, key);
        });
        await using NpgsqlConnection connection = (NpgsqlConnection)await OpenAsync(source, synchronously);
        await using NpgsqlCommand command = new("SELECT current_user::text", connection);

        Assert.Equal("a client", await ScalarAsync(command, synchronously));
    }

    /// <summary>TLS starts without the usual exchange of plain bytes before it. Servers support this from version 17.</summary>
    [Fact]
    public async Task TLS_from_the_first_byte()
    {
        await using NpgsqlDataSource source = Source(s => s.SslNegotiation = SslNegotiation.Direct);
        bool isKnown = PostgresServer.Version >= 17;
        if (!isKnown)
        {
            await Assert.ThrowsAnyAsync<NpgsqlException>(() => OpenAsync(source));
        }

        await using NpgsqlDataSource other = Source();
        await using NpgsqlConnection connection = (NpgsqlConnection)await OpenAsync(isKnown ? source : other);
        await AssertWorksAsync(connection);
    }

    protected override string ServerErrors => server.Errors;

    protected override async Task StartAsync()
    {
        await server.StartAsync();
        if (Interlocked.Exchange(ref s_rolesMade, 1) == 0)
        {
            await using NpgsqlDataSource source = Source();
            await using NpgsqlCommand create = source.CreateCommand("CREATE ROLE \"a client\" LOGIN");
            await create.ExecuteNonQueryAsync().InTime("a role");
        }
    }

    protected override Task RestartAsync() => server.RestartAsync();

    protected override DbDataSource CreateSource() => Source();

    private static int s_rolesMade;

    /// <summary>SCRAM binds the password to the connection (RFC 5929, tls-server-end-point).</summary>
    private NpgsqlDataSource Source(Action<NpgsqlConnectionStringBuilder>? configure = null)
    {
        NpgsqlConnectionStringBuilder settings = new()
        {
            Host = "127.0.0.1",
            Port = server.Port,
            Username = "owner",
            Password = PostgresServer.Password,
            Database = "postgres",
            SslMode = SslMode.VerifyFull,
            ChannelBinding = ChannelBinding.Require,
        };
        configure?.Invoke(settings);
        if (settings.Password is null)
        {
            settings.ChannelBinding = ChannelBinding.Disable;
        }

        return NpgsqlDataSource.Create(settings);
    }
}
