using System.Runtime.InteropServices;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>Runs the whole demo: describes the machine, shows TLS 1.3 and TLS 1.2, and summarizes.</summary>
internal sealed class Demonstration
{
    private static readonly SslProtocols[] s_protocols = [SslProtocols.Tls13, SslProtocols.Tls12];
    private readonly PublishedFile _file;
    private readonly TextWriter _output;

    public Demonstration(PublishedFile file, TextWriter output)
    {
        _file = file;
        _output = output;
    }

    /// <summary>Runs the demo and returns its result in one line.</summary>
    /// <exception cref="DemoFailedException">Something is not as expected.</exception>
    public async Task<string> RunAsync(CancellationToken cancellationToken)
    {
        (RequestedMode mode, string explanation) = Toggles.Settle();
        _output.WriteLine(explanation);
        DescribePlatform();
        _output.WriteLine($"file: {_file.Path}, {_file.Length:N0} bytes, SHA-256 {_file.Sha256}");

        using DemoCertificates certificates = new();
        ProtocolRun run = new(_file, certificates, new Expectation(mode), _output);
        List<ConnectionFacts> ends = [];
        foreach (SslProtocols protocol in s_protocols)
        {
            ends.AddRange(await run.RunAsync(protocol, cancellationToken));
        }

        _output.WriteLine();
        List<string> fallbacks = Fallbacks(ends);
        foreach (string fallback in fallbacks)
        {
            _output.WriteLine(fallback);
        }

        return SumUp(mode, ends, fallbacks.Count > 0);
    }

    /// <summary>Prints the capabilities. This makes the library's trial sockets before anything is counted.</summary>
    private void DescribePlatform()
    {
        KtlsPlatform platform = KtlsPlatform.Probe();
        _output.WriteLine(
            $"{RuntimeInformation.FrameworkDescription}, Linux {KtlsPlatform.KernelRelease}, {platform.OpenSslVersionText}");
        _output.WriteLine(platform.IsSupported
            ? "kernel TLS: supported"
            : $"kernel TLS: not supported ({platform.NotSupportedReason}): {FallbackText.Of(platform.NotSupportedReason)}"
                + (platform.NotSupportedDetail is { Length: > 0 } detail ? $" ({detail})" : ""));
    }

    private static List<string> Fallbacks(List<ConnectionFacts> ends) =>
    [
        .. from end in ends
           from direction in new[] { KtlsDirections.Send, KtlsDirections.Receive }
           where end.ReasonOf(direction) is not (null or KtlsFallbackReason.None)
           let reason = end.ReasonOf(direction)!.Value
           group direction by (end.Protocol, reason) into same
           select $"{ConnectionFacts.NameOf(same.Key.Protocol)} {string.Join(" and ", same.Distinct()).ToLowerInvariant()}: not in the kernel "
               + $"({same.Key.reason}): {FallbackText.Of(same.Key.reason)}",
    ];

    private string SumUp(RequestedMode mode, List<ConnectionFacts> ends, bool fellBack)
    {
        KtlsPlatform platform = KtlsPlatform.Probe();
        string downloads = $"{s_protocols.Length * ProtocolRun.Downloads} downloads of {_file.Length:N0} bytes";
        switch (mode)
        {
            case RequestedMode.StockSslStream:
                return $"{downloads} over the stock SslStream ({KtlsFallbackReason.DisabledByToggle})";
            case RequestedMode.DirectOpenSsl:
                return $"{downloads} over OpenSSL on the socket ({KtlsFallbackReason.NotEnabled})";
            case RequestedMode.OpenSslInstead:
                return $"{downloads} over OpenSSL on the socket ({platform.NotSupportedReason})";
        }

        if (!platform.IsSupported)
        {
            throw new DemoFailedException(
                $"there is no kernel TLS here ({platform.NotSupportedReason}); {downloads} came through over the stock SslStream");
        }

        if (!ends.Exists(end => end.IsInKernel(KtlsDirections.Send) || end.IsInKernel(KtlsDirections.Receive)))
        {
            throw new DemoFailedException($"no direction of any connection was in the kernel; {downloads} came through without");
        }

        return fellBack
            ? $"{downloads} over kernel TLS, where OpenSSL and the kernel can do it; what they cannot is explained above"
            : $"{downloads} over kernel TLS, both ways";
    }
}
