namespace KernelTls.Bench.Tests;

public class PerfReportTests
{
    private const string ByFunction =
        " 12.50%\t    7:dotnet\t[kernel.kallsyms]   \t[k] tls_sw_sendmsg   \t-      -   \n" +
        "  9.00%\t    7:dotnet\tlibcrypto.so.3      \t[.] 0x00000000001f0a52\t-      -   \n" +
        "  4.00%\t    8:.NET TP Worker\tlibc.so.6 \t[.] memcpy\t-      -   \n" +
        "  0.20%\t    7:dotnet\tlibc.so.6           \t[.] malloc\t-      -   \n" +
        "  2.25%\t    8:.NET TP Worker\t[kernel.kallsyms] \t[k] tls_sw_sendmsg\t-      -   \n\n";

    [Fact]
    public void Entries_of_threads_are_added_and_the_largest_is_first() =>
        Assert.Equal(
            ["    14.75%  [kernel.kallsyms]  [k] tls_sw_sendmsg", "     4.00%  libc.so.6  [.] memcpy"],
            PerfReport.OfAllThreads(ByFunction, percentages: 1, keys: 2, leastPercent: 0.4));

    [Fact]
    public void Both_percentages_of_callers_are_added() =>
        Assert.Equal(
            ["    70.00%    10.50%  [k] do_syscall_64"],
            PerfReport.OfAllThreads(
                " 40.00%\t 10.00%\t 7:dotnet\t[k] do_syscall_64 \n 30.00%\t 0.50%\t 8:dotnet\t[k] do_syscall_64\n",
                percentages: 2,
                keys: 1,
                leastPercent: 0.4));
}
