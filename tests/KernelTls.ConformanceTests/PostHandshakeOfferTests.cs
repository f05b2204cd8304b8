using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>Tests a server that requests the certificate of a client which did not offer that (RFC 8446, section 4.2.6).</summary>
public class PostHandshakeOfferTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    /// <summary>
    /// A client that did not offer post-handshake authentication has no certificate. SslStream of .NET 10 throws an internal type of
    /// exception, and this library one that says what to do.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_client_that_did_not_offer_to_be_asked_stays_connected(TlsMode mode)
    {
        foreach (bool judges in new[] { false, true })
        {
            await SideBySide.RunAsync(
                mode,
                async each =>
                {
                    Calls calls = new();
                    await using Meeting meeting = await new Meeting(TlsMode.Stock, each, SslProtocols.Tls13)
                    {
                        ServerValidation = !judges ? null : (_, certificate, chain, errors) =>
                        {
                            calls.Add(certificate, chain is null, errors);
                            return true;
                        },
                    }.SucceedAsync();
                    List<string> outcomes = [];
                    for (int i = 0; i < 2; i++)
                    {
                        Exception? failure = await Record.ExceptionAsync(
                            () => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the negotiation to end"));
                        outcomes.Add(failure is null ? "completed" : Environment.Version.Major < 11 ? "failed" : failure.GetType().Name);
                        outcomes.Add($"{meeting.Server.RemoteCertificate is not null} {meeting.Server.IsAuthenticated} {meeting.Server.IsMutuallyAuthenticated}");
                    }

                    await PostHandshakeCertificateTests.ExchangeAsync(meeting);
                    return $"{string.Join(", ", outcomes)}; {calls}";
                },
                $"{judges}");
        }
    }
}
