namespace KernelTls.Tests;

/// <summary>
/// Contains differences that are faults to be mended. The documents do not list them. When one is mended, its row is
/// unused, which fails the tests: delete the row.
/// </summary>
internal static partial class SurfaceDifferences
{
    private const string NoStatusRequest = "the client does not request a stapled OCSP response";
    private const string FixedAlgorithms = "limiting RSA paddings replaces OpenSSL's list of signature algorithms by a fixed one";
    private const string BaseContext = "through a reference to SslStream there is no binding, and in a callback none at all";
    private const string Policy = "the default chain policy differs from that of the running version";

    private static SurfaceDifference[] FaultsOfWire =>
    [
        new(["client, *"], ["ClientHello.status_request", "again: ClientHello.status_request"], Any, Absent, NoStatusRequest) { IsFault = true },
        new(["client, *"], ["ClientHello.extensions", "again: ClientHello.extensions"], "*status_request*", Any, NoStatusRequest) { IsFault = true },
        new(["client, *, AllowRsaP*"], ["ClientHello.signature_algorithms"], Any, Any, FixedAlgorithms) { IsFault = true },
        new(
            ["server, *, AllowRsaP*, certificate: *"],
            ["CertificateRequest.signature_algorithms"],
            Any,
            Any,
            FixedAlgorithms)
        {
            IsFault = true,
        },
        new(["server, TLS 1.2, AllowRsaP*, certificate: *"], ["CertificateRequest.certificate_types"], Any, Any, FixedAlgorithms) { IsFault = true },
    ];

    private static SurfaceDifference[] FaultsOfCaller =>
    [
        new(
            ["*"],
            ["connected: TransportContext.*", "used: TransportContext.*", "shut down: TransportContext.*", "in *: *TransportContext.*"],
            Any,
            "*null",
            BaseContext)
        {
            IsFault = true,
        },
        new(["*"], ["in *: chain.ChainPolicy.ExtraStore"], Any, Any, Policy) { IsFault = true },
        new(["server, *, no policy"], ["in *: chain.ChainPolicy.DisableCertificateDownloads"], "True", "False", Policy)
        {
            IsFault = true, When = FaultCondition.Net11,
        },
    ];

    private static SurfaceDifference[] FaultsOfKestrel =>
    [
        new(["*"], ["connection: ITlsConnectionFeature.TryGetChannelBindingBytes(*"], "True *", "False 0 bytes", BaseContext)
        {
            IsFault = true, When = FaultCondition.Net11,
        },
    ];
}
