using System.Data;
using System.Data.Common;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests what every woven client of a database does alike, through ADO.NET.</summary>
public abstract class DatabaseTest(string library) : LibraryTest(library)
{
    private const int LargeSize = 5_000_001;

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool synchronously)
    {
        await using DbDataSource source = CreateSource();
        await using DbConnection connection = await OpenAsync(source, synchronously);
        await using DbCommand small = Command(connection, "SELECT @n + 1");
        DbParameter number = small.CreateParameter();
        (number.ParameterName, number.DbType, number.Value) = ("n", DbType.Int32, 0);
        small.Parameters.Add(number);
        await small.PrepareAsync().InTime("a prepared statement");
        for (int i = 0; i < 200; i++)
        {
            number.Value = i;
            Assert.Equal(i + 1, Convert.ToInt64(await ScalarAsync(small, synchronously), null));
        }

        await using DbCommand large = Command(connection, "SELECT @b");
        DbParameter bytes = large.CreateParameter();
        (bytes.ParameterName, bytes.Value) = ("b", Pattern.Take(LargeSize));
        large.Parameters.Add(bytes);
        byte[] echoed = (byte[])(await ScalarAsync(large, synchronously))!;
        Assert.Equal(LargeSize, echoed.Length);
        Pattern.AssertAt(0, echoed);
        Assert.Equal(1, Handshakes);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_pooled_connection_is_used_again_and_replaced_when_the_server_has_restarted(bool synchronously)
    {
        await using DbDataSource source = CreateSource();
        for (int i = 0; i < 20; i++)
        {
            await using DbConnection connection = await OpenAsync(source, synchronously);
            await AssertWorksAsync(connection, synchronously);
        }

        Assert.Equal(1, Handshakes);

        await using (DbConnection connection = await OpenAsync(source, synchronously))
        {
            await RestartAsync();
            await Assert.ThrowsAnyAsync<DbException>(() => AssertWorksAsync(connection, synchronously));
            Assert.NotEqual(ConnectionState.Open, connection.State);
        }

        await using (DbConnection connection = await OpenAsync(source, synchronously))
        {
            await AssertWorksAsync(connection, synchronously);
        }

        Assert.Equal(2, Handshakes);
    }

    /// <summary>Creates the source of connections with the usual settings.</summary>
    protected abstract DbDataSource CreateSource();

    protected abstract Task RestartAsync();

    protected static async Task<DbConnection> OpenAsync(DbDataSource source, bool synchronously = false) => synchronously
        ? await Limits.Blocking(source.OpenConnection).InTime("a connection")
        : await source.OpenConnectionAsync().InTime("a connection");

    protected static async Task<object?> ScalarAsync(DbCommand command, bool synchronously) => synchronously
        ? await Limits.Blocking(command.ExecuteScalar).InTime(command.CommandText)
        : await command.ExecuteScalarAsync().InTime(command.CommandText);

    /// <summary>Asserts that a command is cancelled that would take ten minutes, and that the connection stays usable.</summary>
    protected static async Task CancelAsync(DbConnection connection, string sleep)
    {
        await using DbCommand sleeping = Command(connection, sleep);
        using CancellationTokenSource soon = new(TimeSpan.FromMilliseconds(100));

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sleeping.ExecuteScalarAsync(soon.Token)).InTime("the cancelled command");

        Assert.Equal(ConnectionState.Open, connection.State);
        await AssertWorksAsync(connection);
    }

    protected static async Task AssertWorksAsync(DbConnection connection, bool synchronously = false)
    {
        await using DbCommand command = Command(connection, "SELECT 42");
        Assert.Equal(42, Convert.ToInt64(await ScalarAsync(command, synchronously), null));
    }

    private static DbCommand Command(DbConnection connection, string text)
    {
        DbCommand command = connection.CreateCommand();
        command.CommandText = text;
        return command;
    }
}
