using KernelTls.Weaving;

namespace KernelTls.UnitTests;

/// <summary>Tests the options of woven assemblies that the application names.</summary>
public class WovenLibraryTests
{
    [Theory]
    [InlineData("Npgsql; talk", KtlsExpectNoPadding.Always)]
    [InlineData("all", KtlsExpectNoPadding.Always)]
    [InlineData("Npgsql;Talk.More", KtlsExpectNoPadding.Automatic)]
    [InlineData(null, KtlsExpectNoPadding.Automatic)]
    public void Assemblies_that_the_application_names_always_expect_no_padding(string? names, KtlsExpectNoPadding expected)
    {
        AppContext.SetData(WovenLibrary.NoPaddingNames, names);
        try
        {
            Assert.Equal(expected, new WovenLibrary("Talk").Options.ExpectNoPadding);
        }
        finally
        {
            AppContext.SetData(WovenLibrary.NoPaddingNames, null);
        }
    }
}
