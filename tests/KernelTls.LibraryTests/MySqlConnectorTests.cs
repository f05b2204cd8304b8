using System.Data;
using System.Data.Common;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MySqlConnector;

namespace KernelTls.LibraryTests;

/// <summary>Tests MySqlConnector with MariaDB.</summary>
public sealed class MySqlConnectorTests(MariaDbServer server) : DatabaseTest("MySqlConnector"), IClassFixture<MariaDbServer>
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Rows_are_copied_in_and_out(bool synchronously)
    {
        const int Rows = 20_000;
        await using MySqlDataSource source = Source();
        await using MySqlConnection connection = (MySqlConnection)await OpenAsync(source, synchronously);
        await using (MySqlCommand create = new("CREATE TEMPORARY TABLE t (n INT, s TEXT)", connection))
        {
            await create.ExecuteNonQueryAsync().InTime("a table");
        }

        using DataTable table = new();
        table.Columns.Add("n", typeof(int));
        table.Columns.Add("s", typeof(string));
        for (int i = 0; i < Rows; i++)
        {
            table.Rows.Add(i, $"row {i}");
        }

        MySqlBulkCopy copy = new(connection) { DestinationTableName = "t" };
        MySqlBulkCopyResult copied = synchronously
            ? await Limits.Blocking(() => copy.WriteToServer(table)).InTime("rows in")
            : await copy.WriteToServerAsync(table).InTime("rows in");
        Assert.Equal(Rows, copied.RowsInserted);

        await using MySqlCommand select = new("SELECT n, s FROM t", connection);
        long sum = synchronously ? await Limits.Blocking(Sum).InTime("rows out") : await SumAsync().InTime("rows out");
        Assert.Equal((long)Rows * (Rows - 1) / 2, sum);

        long Sum()
        {
            long total = 0;
            using MySqlDataReader reader = select.ExecuteReader();
            while (reader.Read())
            {
                Assert.Equal($"row {reader.GetInt32(0)}", reader.GetString(1));
                total += reader.GetInt32(0);
            }

            return total;
        }

        async Task<long> SumAsync()
        {
            long total = 0;
            await using MySqlDataReader reader = await select.ExecuteReaderAsync();
            while (await reader.ReadAsync())
            {
                Assert.Equal($"row {reader.GetInt32(0)}", reader.GetString(1));
                total += reader.GetInt32(0);
            }

            return total;
        }
    }

    /// <summary>The library cancels through a separate connection, and the connection that waited stays usable.</summary>
    [Fact]
    public async Task A_cancelled_query_leaves_a_connection_that_works()
    {
        await using MySqlDataSource source = Source();
        await using DbConnection connection = await OpenAsync(source);
        await CancelAsync(connection, "SELECT SLEEP(600)");
        Assert.Equal(2, Handshakes);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_client_certificate_opens_the_account_that_wants_it(bool synchronously)
    {
        using TemporaryDirectory files = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Client, files.FullName);
        await using (MySqlDataSource without = Source(s => s.UserID = "client"))
        {
            await Assert.ThrowsAsync<MySqlException>(() => OpenAsync(without, synchronously));
        }

        await using MySqlDataSource source = Source(s => (s.UserID, s.SslCert, s.SslKey, s.Database) = ("client", certificate, key, ""));
        await using MySqlConnection connection = (MySqlConnection)await OpenAsync(source, synchronously);
        await using MySqlCommand command = new("SELECT CURRENT_USER()", connection);

        Assert.Equal("client@127.0.0.1", await ScalarAsync(command, synchronously));
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    protected override Task RestartAsync() => server.RestartAsync();

    protected override DbDataSource CreateSource() => Source();

    private MySqlDataSource Source(Action<MySqlConnectionStringBuilder>? configure = null)
    {
        MySqlConnectionStringBuilder settings = new()
        {
            Server = "127.0.0.1",
            Port = (uint)server.Port,
            UserID = "owner",
            Password = MariaDbServer.Password,
            Database = "test",

            // VerifyFull requires a revocation list, and the test authority has none.
            SslMode = MySqlSslMode.VerifyCA,
            AllowLoadLocalInfile = true,
            ConnectionTimeout = (uint)Limits.Wait.TotalSeconds,
            DefaultCommandTimeout = (uint)Limits.Wait.TotalSeconds,
        };
        configure?.Invoke(settings);
        return new MySqlDataSource(settings.ConnectionString);
    }
}
