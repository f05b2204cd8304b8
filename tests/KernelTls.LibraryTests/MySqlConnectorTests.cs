using System.Data;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MySqlConnector;

namespace KernelTls.LibraryTests;

/// <summary>Tests MySqlConnector with MariaDB.</summary>
public sealed class MySqlConnectorTests(MariaDbServer server) : LibraryTest("MySqlConnector"), IClassFixture<MariaDbServer>
{
    private const int LargeSize = 5_000_001;

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool synchronously)
    {
        await using MySqlDataSource source = Source();
        await using MySqlConnection connection = await OpenAsync(source, synchronously);
        await using MySqlCommand small = new("SELECT @n + 1", connection);
        small.Parameters.Add("@n", MySqlDbType.Int64);
        for (long i = 0; i < 200; i++)
        {
            small.Parameters[0].Value = i;
            Assert.Equal(i + 1, Convert.ToInt64(await ScalarAsync(small, synchronously), null));
        }

        await using MySqlCommand large = new("SELECT @b", connection);
        large.Parameters.AddWithValue("@b", Pattern.Take(LargeSize));
        byte[] echoed = (byte[])(await ScalarAsync(large, synchronously))!;
        Assert.Equal(LargeSize, echoed.Length);
        Pattern.AssertAt(0, echoed);
        Assert.Equal(1, Handshakes);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Rows_are_copied_in_and_out(bool synchronously)
    {
        const int Rows = 20_000;
        await using MySqlDataSource source = Source();
        await using MySqlConnection connection = await OpenAsync(source, synchronously);
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
        await using MySqlConnection connection = await OpenAsync(source);
        await using MySqlCommand sleeping = new("SELECT SLEEP(600)", connection);
        using CancellationTokenSource soon = new(TimeSpan.FromMilliseconds(100));

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sleeping.ExecuteScalarAsync(soon.Token)).InTime("the cancelled command");

        Assert.Equal(ConnectionState.Open, connection.State);
        await AssertWorksAsync(connection);
        Assert.Equal(2, Handshakes);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_pooled_connection_is_used_again_and_replaced_when_the_server_has_restarted(bool synchronously)
    {
        await using MySqlDataSource source = Source();
        for (int i = 0; i < 20; i++)
        {
            await using MySqlConnection connection = await OpenAsync(source, synchronously);
            await AssertWorksAsync(connection, synchronously);
        }

        Assert.Equal(1, Handshakes);

        await using (MySqlConnection connection = await OpenAsync(source, synchronously))
        {
            await server.RestartAsync();
            await Assert.ThrowsAnyAsync<MySqlException>(() => AssertWorksAsync(connection, synchronously));
        }

        await using (MySqlConnection connection = await OpenAsync(source, synchronously))
        {
            await AssertWorksAsync(connection, synchronously);
        }

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
        await using MySqlConnection connection = await OpenAsync(source, synchronously);
        await using MySqlCommand command = new("SELECT CURRENT_USER()", connection);

        Assert.Equal("client@127.0.0.1", await ScalarAsync(command, synchronously));
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

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

    private static async Task<MySqlConnection> OpenAsync(MySqlDataSource source, bool synchronously = false) => synchronously
        ? await Limits.Blocking(source.OpenConnection).InTime("a connection")
        : await source.OpenConnectionAsync().InTime("a connection");

    private static async Task<object?> ScalarAsync(MySqlCommand command, bool synchronously) => synchronously
        ? await Limits.Blocking(command.ExecuteScalar).InTime(command.CommandText)
        : await command.ExecuteScalarAsync().InTime(command.CommandText);

    private static async Task AssertWorksAsync(MySqlConnection connection, bool synchronously = false)
    {
        await using MySqlCommand command = new("SELECT 42", connection);
        Assert.Equal(42L, Convert.ToInt64(await ScalarAsync(command, synchronously), null));
    }
}
