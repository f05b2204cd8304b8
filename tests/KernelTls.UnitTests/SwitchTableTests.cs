using System.Text;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests what mode, fallback and the operator's variables come to, in every combination: docs/switches.md has the table.</summary>
public class SwitchTableTests
{
    /// <summary>The values of a variable, as the columns and rows of the table have them.</summary>
    private static readonly (string Text, Toggle Toggle)[] s_values =
        [("unset", Toggle.Unset), ("1", Toggle.On), ("0", Toggle.Off), ("another", Toggle.Invalid)];

    [Fact]
    public void The_document_has_the_result_of_every_combination() =>
        GeneratedTable.Check("docs/switches.md", typeof(SwitchTableTests), "src/KernelTls/Offload/EngineChoice.cs", Render());

    /// <summary>A platform that has neither changes the result to SslStream, or to a failure, and the first reason stays.</summary>
    [Fact]
    public void Where_neither_is_possible_both_reasons_are_known()
    {
        EngineChoice requested = EngineChoice.Requested(KtlsMode.Preferred, KtlsFallback.OpenSsl, Toggle.Unset, Toggle.Unset);
        Assert.Equal(Engine.Kernel, requested.Engine);

        EngineChoice withoutKernel = requested.Where(KtlsFallbackReason.ModuleMissing, KtlsFallbackReason.None);
        Assert.Equal((Engine.DirectOpenSsl, KtlsFallbackReason.None), (withoutKernel.Engine, withoutKernel.Reason));

        EngineChoice stock = withoutKernel.Where(KtlsFallbackReason.NotSocketStream, KtlsFallbackReason.NotSocketStream);
        Assert.Equal((Engine.Managed, KtlsFallbackReason.ModuleMissing), (stock.Engine, stock.Reason));
        Assert.Equal(KtlsFallbackReason.NotSocketStream, KtlsOffload.Managed(stock).OpenSslFallbackReason);
        Assert.Equal("No module. OpenSSL does not use the socket either: NotSocketStream.", stock.AppendTo("No module."));
    }

    /// <summary>What was requested and is not possible is reported, even if kernel TLS was not requested.</summary>
    [Fact]
    public void A_request_for_OpenSSL_alone_that_fails_has_its_own_reason()
    {
        EngineChoice choice = EngineChoice.Requested(KtlsMode.Disabled, KtlsFallback.OpenSsl, Toggle.Unset, Toggle.Unset)
            .Where(KtlsFallbackReason.OpenSslNotFound, KtlsFallbackReason.OpenSslNotFound);

        Assert.Equal((Engine.Managed, KtlsFallbackReason.OpenSslNotFound), (choice.Engine, choice.Reason));
        Assert.Equal("", choice.AppendTo(""));
    }

    private static string Render()
    {
        StringBuilder table = new();
        foreach (KtlsFallback fallback in Enum.GetValues<KtlsFallback>())
        {
            table.AppendLine().AppendLine($"With `KtlsFallback.{fallback}`{(fallback == KtlsFallback.Environment ? ", the default" : "")}:");
            table.AppendLine().Append("| `KtlsMode` | `…_KTLS` |");
            foreach ((string text, _) in s_values)
            {
                table.Append($" `…_DIRECT_OPENSSL` {text} |");
            }

            table.AppendLine().AppendLine("| --- | --- | --- | --- | --- | --- |");
            foreach (KtlsMode mode in Enum.GetValues<KtlsMode>())
            {
                foreach ((string text, Toggle kernel) in s_values)
                {
                    table.Append($"| {mode} | {text} |");
                    foreach ((_, Toggle directOpenSsl) in s_values)
                    {
                        table.Append($" {Describe(mode, EngineChoice.Requested(mode, fallback, kernel, directOpenSsl))} |");
                    }

                    table.AppendLine();
                }
            }
        }

        return table.AppendLine().ToString();
    }

    private static string Describe(KtlsMode mode, EngineChoice choice)
    {
        string otherwise = choice.OpenSslReason == KtlsFallbackReason.None ? "OpenSSL" : "SslStream";
        return choice.Engine switch
        {
            Engine.Kernel when mode == KtlsMode.Required => "kernel, else failure",
            Engine.Kernel => $"kernel, else {otherwise}",
            Engine.DirectOpenSsl => $"OpenSSL ({choice.KernelReason})",
            _ when mode == KtlsMode.Required => $"failure ({choice.Reason})",
            _ => $"SslStream ({choice.Reason})",
        };
    }
}
