using KernelTls.AspNetCore.Internals;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that this ASP.NET Core has the private members that this library uses. Also run on each servicing release.
/// </summary>
public class KestrelInternalsTests
{
    [Fact]
    public void The_private_members_of_Kestrel_are_those_this_library_knows() => Assert.Equal("", KestrelInternals.Missing);

    [Fact]
    public void The_private_members_of_HTTP2_are_those_this_library_knows() => Assert.True(KestrelHttp2Stream.IsKnown);
}
