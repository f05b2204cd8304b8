using KernelTls.Offload;

namespace KernelTls.UnitTests;

public class EngineChoiceTests
{
    // Columns: neither switch, KtlsOptions.DirectOpenSsl, DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1, both.
    private const string Table = """
        Environment Unset   NotEnabled       Direct           Direct Direct
        Environment On      Kernel           Direct           Kernel Kernel
        Environment Off     DisabledByToggle DisabledByToggle Direct Direct
        Environment Invalid ToggleInvalid    Direct           Direct Direct
        Disabled    Unset   DisabledByMode   Direct           Direct Direct
        Disabled    On      DisabledByMode   Direct           Direct Direct
        Disabled    Off     DisabledByMode   DisabledByMode   Direct Direct
        Disabled    Invalid DisabledByMode   Direct           Direct Direct
        Preferred   Unset   Kernel           Direct           Kernel Kernel
        Preferred   On      Kernel           Direct           Kernel Kernel
        Preferred   Off     DisabledByToggle DisabledByToggle Direct Direct
        Preferred   Invalid Kernel           Direct           Kernel Kernel
        Required    Unset   Kernel           Direct           Kernel Kernel
        Required    On      Kernel           Direct           Kernel Kernel
        Required    Off     DisabledByToggle DisabledByToggle Direct Direct
        Required    Invalid Kernel           Direct           Kernel Kernel
        """;

    public static TheoryData<string, string, bool, bool, string> Rows()
    {
        TheoryData<string, string, bool, bool, string> rows = [];
        foreach (string line in Table.Split('\n'))
        {
            string[] cells = line.Split(' ', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries);
            for (int column = 0; column < 4; column++)
            {
                rows.Add(cells[0], cells[1], column is 1 or 3, column is 2 or 3, cells[2 + column]);
            }
        }

        return rows;
    }

    [Theory]
    [MemberData(nameof(Rows))]
    public void The_mode_the_toggle_and_the_experiment_decide_the_engine(
        string mode, string toggle, bool option, bool variable, string expected)
    {
        (Engine engine, KtlsFallbackReason reason) =
            EngineChoice.Decide(Enum.Parse<KtlsMode>(mode), option, Enum.Parse<Toggle>(toggle), variable);

        string actual = engine switch
        {
            Engine.DirectOpenSsl => "Direct",
            Engine.Kernel => "Kernel",
            _ => reason.ToString(),
        };
        Assert.Equal(expected, actual);
        Assert.Equal(engine == Engine.Managed, reason != KtlsFallbackReason.None);
    }

    [Fact]
    public void The_table_has_every_mode_and_every_toggle() =>
        Assert.Equal(
            Enum.GetValues<KtlsMode>().Length * Enum.GetValues<Toggle>().Length,
            Table.Split('\n').Select(l => string.Join(' ', l.Split(' ', StringSplitOptions.RemoveEmptyEntries)[..2])).Distinct().Count());
}
