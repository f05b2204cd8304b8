using System.Globalization;
using System.Text.RegularExpressions;

namespace KernelTls.Tool.Readers;

/// <summary>Represents the version of a kernel, without what a distribution appends to it.</summary>
/// <param name="Major">The first number.</param>
/// <param name="Minor">The second number.</param>
/// <param name="Patch">The third number, or 0.</param>
/// <param name="Candidate">The number of the release candidate, or <see cref="int.MaxValue"/> for a release.</param>
internal readonly partial record struct KernelVersion(int Major, int Minor, int Patch, int Candidate) : IComparable<KernelVersion>
{
    /// <summary>Returns the version in a release such as <c>6.12.117+deb13-cloud-amd64</c> or <c>7.2-rc3</c>, or null if there is none.</summary>
    public static KernelVersion? Parse(string release)
    {
        Match match = Release().Match(release);
        return match.Success
            ? new(Number(match.Groups[1], 0), Number(match.Groups[2], 0), Number(match.Groups[3], 0), Number(match.Groups[4], int.MaxValue))
            : null;
    }

    /// <summary>Returns whether both are versions of one series, such as 6.12.</summary>
    public bool IsInSeriesOf(KernelVersion other) => (Major, Minor) == (other.Major, other.Minor);

    public int CompareTo(KernelVersion other) =>
        (Major, Minor, Patch, Candidate).CompareTo((other.Major, other.Minor, other.Patch, other.Candidate));

    public override string ToString() =>
        $"{Major}.{Minor}{(Patch == 0 ? "" : $".{Patch}")}{(Candidate == int.MaxValue ? "" : $"-rc{Candidate}")}";

    public static bool operator <(KernelVersion left, KernelVersion right) => left.CompareTo(right) < 0;

    public static bool operator >(KernelVersion left, KernelVersion right) => left.CompareTo(right) > 0;

    public static bool operator <=(KernelVersion left, KernelVersion right) => left.CompareTo(right) <= 0;

    public static bool operator >=(KernelVersion left, KernelVersion right) => left.CompareTo(right) >= 0;

    private static int Number(Group group, int otherwise) =>
        group.Success && int.TryParse(group.ValueSpan, NumberStyles.None, CultureInfo.InvariantCulture, out int number) ? number : otherwise;

    // Debian writes ~rc3, and Ubuntu's builds of the mainline -070200rc3.
    [GeneratedRegex(@"^(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-~](?:\d{6})?rc(\d{1,6}))?")]
    private static partial Regex Release();
}
