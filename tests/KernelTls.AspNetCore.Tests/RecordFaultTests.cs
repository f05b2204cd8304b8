using System.Net;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>A record in the midst of a body that nobody has sent like that: whoever reads the body is told at once.</summary>
public class RecordFaultTests
{
    private const int Size = 4_000_000;

    /// <summary>How many records pass first: the body has begun.</summary>
    private const int Before = 20;

    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(Cell.IsLab ? 8 : 4);

    /// <summary>One of each error that the kernel's parser has, and one of its decryption.</summary>
    private static readonly string[] s_faults = ["major version", "length 1", "length 65535", "tag"];

    public static TheoryData<TlsMode, string> All => Modes.With("1.1", "2.0");

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_response_body_ends_at_once(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(TlsMode.Stock);
        server.FailsOnPurpose = true;
        foreach (string fault in s_faults)
        {
            using ModeClient client = new(mode, version);
            using Socket listener = Listen();
            Task<FaultRelay> accepting = FaultRelay.AcceptAsync(listener, new IPEndPoint(IPAddress.Loopback, server.Https.Port), toClient: true);
            Task<HttpResponseMessage> answering = client.Http.GetAsync(
                new Uri($"https://127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}/bytes/{Size}"), HttpCompletionOption.ResponseHeadersRead);
            using FaultRelay relay = await accepting.InTime("the client's connection");
            relay.Arm(RecordFaults.All[fault], Before);
            using HttpResponseMessage response = await answering.InTime("the head of the answer");
            using Stream body = await response.Content.ReadAsStreamAsync();
            Task<int> reading = Pattern.ReceiveAsync(body, Size);
            await relay.Sent.InTime("the fault");

            Exception? failure = await Record.ExceptionAsync(() => reading.Within(s_limit, $"a body with a fault in it: {fault}"));
            Assert.True(failure is IOException or HttpRequestException, $"{fault}: {failure}");
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_request_body_ends_at_once(TlsMode mode, string version)
    {
        TaskCompletionSource<Exception?> end = new();
        await using Server server = await Server.StartAsync(mode, application: application => application.MapPost("/observe", ObserveAsync));
        server.FailsOnPurpose = true;
        foreach (string fault in s_faults)
        {
            Volatile.Write(ref end, new TaskCompletionSource<Exception?>(TaskCreationOptions.RunContinuationsAsynchronously));
            using HttpClient client = Server.CreateClient(version);
            using Socket listener = Listen();
            Task<FaultRelay> accepting = FaultRelay.AcceptAsync(listener, new IPEndPoint(IPAddress.Loopback, server.Https.Port), toClient: false);
            using ByteArrayContent content = new(Pattern.Take(Size));
            Task<HttpResponseMessage> posting = client.PostAsync(
                new Uri($"https://127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}/observe"), content);
            using FaultRelay relay = await accepting.InTime("the client's connection");
            relay.Arm(RecordFaults.All[fault], Before);
            await relay.Sent.InTime("the fault");

            Exception? failure = await end.Task.Within(s_limit, $"a body with a fault in it: {fault}");
            Assert.True(failure is IOException or OperationCanceledException, $"{fault}: {failure}");

            // The application goes on to answer; where the alert has ended the connection, the client gets no answer.
            Exception? told = await Record.ExceptionAsync(() => posting.Within(s_limit, $"the client to learn of it: {fault}"));
            Assert.True(told is null or HttpRequestException, $"{fault}: {told}");
        }

        async Task ObserveAsync(HttpContext context)
        {
            Exception? failure = await Record.ExceptionAsync(() => Pattern.ReceiveAsync(context.Request.Body, Size));
            Volatile.Read(ref end).SetResult(failure);
        }
    }

    private static Socket Listen()
    {
        Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        return listener;
    }
}
