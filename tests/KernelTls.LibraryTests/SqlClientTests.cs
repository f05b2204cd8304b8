using System.Reflection;
using System.Security.Cryptography;
using System.Text;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.Data.SqlClient;

namespace KernelTls.LibraryTests;

/// <summary>
/// Tests Microsoft.Data.SqlClient with <c>Encrypt=Strict</c>, whose TLS lies on the socket. Otherwise TLS is wrapped in packets of the protocol.
/// </summary>
[Trait("host", "yes")]
public sealed class SqlClientTests() : LibraryTest("Microsoft.Data.SqlClient", "KernelTls.LibraryTests")
{
    private const int LargeSize = 3_000_001;

    private readonly SqlServerStub _server = new();

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_large_commands_on_one_connection(bool synchronously)
    {
        await using SqlConnection connection = new(ConnectionString());
        await Do(synchronously, connection.Open, () => connection.OpenAsync()).InTime("a connection");
        for (int i = 0; i <= 100; i++)
        {
            string text = i == 100 ? new string('x', LargeSize) : $"command {i}";
            Assert.Equal(SHA256.HashData(Encoding.Unicode.GetBytes(text)), await RunAsync(connection, text, synchronously));
        }

        byte[] large = await RunAsync(connection, $"{SqlServerStub.Download}{LargeSize}", synchronously);
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        await using (SqlConnection connection = new(ConnectionString()))
        {
            await connection.OpenAsync().InTime("a connection");
            await _server.StopAsync();
            await Assert.ThrowsAsync<SqlException>(() => RunAsync(connection, "lost", synchronously: false));
        }

        _server.Start();
        await using SqlConnection next = new(ConnectionString());
        await next.OpenAsync().InTime("another connection");
        Assert.Equal(32, (await RunAsync(next, "found", synchronously: false)).Length);
        Assert.Equal(4, Handshakes);
    }

    protected override Task StartAsync()
    {
        // The library refuses to run without ICU, which it needs for the collations of text, and which the lab's cells lack. There is no
        // text here.
        FieldInfo isInvariant = typeof(SqlConnection).Assembly.GetType("Microsoft.Data.SqlClient.LocalAppContextSwitches", throwOnError: true)!
            .GetField("s_globalizationInvariantMode", BindingFlags.Static | BindingFlags.NonPublic)!;
        isInvariant.SetValue(null, Enum.Parse(isInvariant.FieldType, "False"));
        _server.Start();
        return Task.CompletedTask;
    }

    protected override async Task StopAsync() => await _server.DisposeAsync();

    private static Task Do(bool synchronously, Action action, Func<Task> start) => synchronously ? Limits.Blocking(action) : start();

    private static async Task<byte[]> RunAsync(SqlConnection connection, string text, bool synchronously)
    {
        await using SqlCommand command = new(text, connection) { CommandTimeout = 20 };
        return (byte[])(synchronously
            ? await Limits.Blocking(command.ExecuteScalar).InTime(text[..9])
            : await command.ExecuteScalarAsync().InTime(text))!;
    }

    private string ConnectionString() => new SqlConnectionStringBuilder
    {
        DataSource = $"tcp:localhost,{_server.Port}",
        UserID = "user",
        Password = "word",
        Encrypt = SqlConnectionEncryptOption.Strict,
        Pooling = false,
        ConnectRetryCount = 0,
    }.ConnectionString;
}
