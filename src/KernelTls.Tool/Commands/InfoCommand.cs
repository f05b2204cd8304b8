using System.CommandLine;
using System.Globalization;
using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.Offload;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Readers;
using Spectre.Console;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls info</c>, which tests what this machine can do.</summary>
internal static class InfoCommand
{
    private static readonly (string Cipher, TlsCipherSuite Tls12, TlsCipherSuite Tls13)[] s_ciphers =
    [
        ("AES-128-GCM", TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TlsCipherSuite.TLS_AES_128_GCM_SHA256),
        ("AES-256-GCM", TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TlsCipherSuite.TLS_AES_256_GCM_SHA384),
        ("AES-128-CCM", TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM, TlsCipherSuite.TLS_AES_128_CCM_SHA256),
        ("ChaCha20-Poly1305", TlsCipherSuite.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256),
    ];

    public static Command Create()
    {
        Option<int?> process = new("--process")
        {
            Description = "Show instead what of this running .NET process uses kernel TLS, what does not, and why.",
            HelpName = "PID",
        };
        process.Validators.Add(result => PeerArguments.Expect(
            result, text => int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int number) && number > 0, "a number above 0"));
        Command command = new("info", "Shows whether kernel TLS is available here, and if not, why: kernel, module, OpenSSL, network devices, switches.")
        {
            process,
        };
        command.SetWork((arguments, terminal, cancellationToken) =>
        {
            if (arguments.GetValue(process) is { } id)
            {
                return ProcessInfo.ShowAsync(id, terminal, cancellationToken);
            }

            InfoReport report = Read();
            if (terminal.IsJson)
            {
                terminal.Document(report);
            }
            else
            {
                Show(report, terminal);
            }

            return Task.FromResult(report.Supported ? ExitCode.Ok : ExitCode.No);
        });
        return command;
    }

    private static InfoReport Read()
    {
        // Before the kernel is probed: with CAP_NET_ADMIN the probe itself loads the module.
        TlsModule before = TlsModule.Read("/", KtlsPlatform.KernelRelease);
        Platform platform = Platform.Current;
        TlsModule module = TlsModule.Read("/", KtlsPlatform.KernelRelease)
            .After(before, platform.KernelReason == KtlsFallbackReason.ModuleMissing);
        InfoReport.ToggleState toggle = ReadToggle();
        InfoReport.Capability[] capabilities = [.. ReadCapabilities()];
        KtlsFallbackReason reason = platform.KernelReason;
        return new InfoReport(
            Verdict.Of(reason, capabilities, platform.CanRekey, toggle),
            reason == KtlsFallbackReason.None,
            reason,
            platform.Detail,
            reason == KtlsFallbackReason.ModuleMissing ? module.ToDo : Advice.On(reason),
            toggle,
            ReadFallback(),
            ReadRuntime(platform),
            new(
                KtlsPlatform.KernelRelease,
                RuntimeInformation.ProcessArchitecture.ToString(),
                Machine.Hypervisor,
                OperatingSystem.IsLinux() ? KernelFaults.In(KtlsPlatform.KernelRelease, platform.Kernel.CanExpectNoPadding) : null),
            module,
            new(
                platform.OpenSslVersion.ToString(),
                platform.OpenSslText,
                platform.OpenSslText.Length == 0 ? null : platform.OpenSslHasKtls),
            capabilities,
            platform.CanRekey,
            platform.CanExpectNoPadding,
            platform.Kernel.CanZeroCopySendFile,
            NetworkDevice.ReadAll(),
            new(Machine.Sysctl("net.core.busy_read"), Machine.Sysctl("net.core.busy_poll")),
            TlsStat.Read());
    }

    /// <summary>The trial of the private members needs OpenSSL.</summary>
    private static InfoReport.RuntimeState ReadRuntime(Platform platform) => new(
        Environment.Version.ToString(),
        RuntimeInformation.FrameworkDescription,
        RuntimeInternals.Missing,
        RuntimeInternals.IsAvailable && platform.OpenSslText.Length != 0 ? RuntimeCanary.FindChange() : "");

    private static InfoReport.ToggleState ReadToggle()
    {
        string state = Toggles.Kernel.ToString();
        string? variable = Environment.GetEnvironmentVariable(Toggles.KernelVariable);
        string source = !string.IsNullOrEmpty(variable) ? $"{Toggles.KernelVariable}={variable}"
            : Toggles.Kernel == Toggle.Unset ? ""
            : $"the AppContext switch {Toggles.KernelSwitch}";
        return new InfoReport.ToggleState(state, source);
    }

    private static InfoReport.ToggleState ReadFallback()
    {
        string? variable = Environment.GetEnvironmentVariable(Toggles.DirectVariable);
        return new InfoReport.ToggleState(
            Toggles.DirectOpenSsl.ToString(), string.IsNullOrEmpty(variable) ? "" : $"{Toggles.DirectVariable}={variable}");
    }

    private static IEnumerable<InfoReport.Capability> ReadCapabilities() =>
        from protocol in new[] { SslProtocols.Tls12, SslProtocols.Tls13 }
        from cipher in s_ciphers
        from direction in new[] { KtlsDirections.Send, KtlsDirections.Receive }
        let suite = protocol == SslProtocols.Tls12 ? cipher.Tls12 : cipher.Tls13
        select new InfoReport.Capability(
            direction, protocol, cipher.Cipher, KtlsPlatform.Probe().GetFallbackReason(direction, protocol, suite));

    private static void Show(InfoReport report, Terminal terminal)
    {
        terminal.Headline($"Kernel TLS: {report.Verdict}", new Style(report.Supported ? Color.Green : Color.Red, decoration: Decoration.Bold));
        terminal.Line();
        terminal.Line($"kernel      {report.Kernel.Release} ({report.Kernel.Architecture}{(report.Kernel.Hypervisor is { } name ? ", on " + name : "")})");
        terminal.Line($"faults      {DescribeFaults(report.Kernel.Faults)}");
        terminal.Line($"runtime     {Describe(report.Runtime)}");
        terminal.Line($"tls module  {Describe(report.Module)}");
        terminal.Line($"OpenSSL     {Describe(report.OpenSsl, report.Reason)}");
        terminal.Line($"switch      {Describe(report.Toggle)}");
        terminal.Line($"without it  {Describe(Fallback(report), report.DirectOpenSsl.Source)}");
        if (report.Supported)
        {
            terminal.Line($"keys        TLS 1.3 keys {(report.CanRekey ? "can" : "cannot")} change in the kernel");
            terminal.Line($"padding     ExpectNoPadding has {(report.CanExpectNoPadding ? "an" : "no")} effect here");
            terminal.Line($"zero-copy   sendfile without a copy, for devices that encrypt: {(report.CanZeroCopySendFile ? "supported by this kernel" : "not supported by this kernel")}");
        }

        terminal.Line($"busy poll   net.core.busy_read={Describe(report.BusyPoll.Read)} net.core.busy_poll={Describe(report.BusyPoll.Poll)}");
        if (report.Detail.Length > 0)
        {
            terminal.Line($"detail      {report.Detail}");
        }

        terminal.Line();
        terminal.Table(
            ["cipher", .. from c in Columns(report) select $"{Verdict.Name(c.Protocol)} {c.Direction}"],
            from cipher in s_ciphers
            select (string[])[cipher.Cipher, .. from c in report.Capabilities where c.Cipher == cipher.Cipher select Describe(c.Reason)]);
        ShowDevices(report, terminal);
        terminal.Line();
        terminal.Line($"counters ({TlsStat.Path}, including 11 TlsTxSw and 10 TlsRxSw of the trial that each process makes):");
        terminal.Line(report.Counters is null ? "  none: no tls module" : "  " + string.Join(' ', report.Counters.Select(c => $"{c.Key}={c.Value}")));
    }

    /// <summary>Returns what connections use by default where the kernel cannot process them.</summary>
    private static string Fallback(InfoReport report) =>
        report.DirectOpenSsl.State == nameof(Toggle.On) && report.Toggle.State is nameof(Toggle.On) or nameof(Toggle.Unset)
            ? "OpenSSL on the socket"
            : "SslStream";

    private static string Describe(InfoReport.ToggleState toggle) => Describe(toggle.State, toggle.Source);

    private static string Describe(string state, string source) => source.Length == 0 ? state : $"{state}, by {source}";

    private static IEnumerable<InfoReport.Capability> Columns(InfoReport report) =>
        report.Capabilities.Where(c => c.Cipher == s_ciphers[0].Cipher);

    private static void ShowDevices(InfoReport report, Terminal terminal)
    {
        terminal.Line();
        terminal.Table(
            ["device", "TLS features", "TLS statistics"],
            from d in report.Devices
            select (string[])
            [
                d.Name,
                d.Error ?? (d.Features.Count == 0 ? "none" : string.Join(' ', d.Features.Select(Describe))),
                d.Statistics.Count == 0 ? "none" : string.Join(' ', d.Statistics.Select(s => $"{s.Key}={s.Value}")),
            ]);
    }

    private static string Describe(NetworkDevice.Feature feature) =>
        $"{feature.Name}={(feature.Active ? "on" : "off")}{(feature.Fixed ? "[fixed]" : "")}";

    private static string Describe(TlsModule module) =>
        $"{module.State}{(module.LoadedByLooking ? " (by this command)" : "")}{(module.InContainer ? ", in a container" : "")}"
        + (module.State is TlsModuleState.Loaded or TlsModuleState.BuiltIn ? "" : $". {module.ToDo}");

    private static string Describe(InfoReport.RuntimeState runtime) => runtime.Description
        + (runtime.Missing.Length != 0 ? $", lacks {runtime.Missing}"
            : runtime.Changed.Length != 0 ? $", differs: {runtime.Changed}"
            : ", supported by KernelTls");

    private static string Describe(InfoReport.OpenSslState openSsl, KtlsFallbackReason reason) => openSsl.Text.Length == 0
        ? reason is KtlsFallbackReason.OpenSslNotSupported or KtlsFallbackReason.OpenSslTooOld ? "not supported" : "not found"
        : $"{openSsl.Text}, built {(openSsl.BuiltWithKtls == true ? "with" : "without")} kernel TLS";

    private static string DescribeFaults(IReadOnlyList<string>? faults) => faults switch
    {
        null => "not known for this kernel",
        [] => "none of those in docs/security.md, by its version",
        _ => $"{string.Join(", ", faults)}: by its version; your distribution may have backported the fix (docs/security.md)",
    };

    private static string Describe(KtlsFallbackReason reason) => reason == KtlsFallbackReason.None ? "kernel" : reason.ToString();

    private static string Describe(long? value) => value?.ToString(CultureInfo.InvariantCulture) ?? "?";
}
