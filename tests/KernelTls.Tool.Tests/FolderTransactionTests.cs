using KernelTls.Tests;
using KernelTls.Tool.Weaving;

namespace KernelTls.Tool.Tests;

/// <summary>Tests what is left if the tool ends at any of its steps, as by kill -9: the application works, and the next run finishes.</summary>
public class FolderTransactionTests
{
    private const int Libraries = 3;

    /// <summary>The steps are those of a whole run, so that none is forgotten.</summary>
    public static TheoryData<string, bool> Steps
    {
        get
        {
            using SampleFolder folder = new(Libraries);
            List<string> weaving = [], restoring = [];
            Weave(folder, weaving.Add);
            using (FolderTransaction transaction = new(folder.FullName, restoring.Add))
            {
                transaction.Restore(FolderJournal.Read(folder.FullName)!);
            }

            return [.. weaving.Select(s => (s, false)), .. restoring.Select(s => (s, true))];
        }
    }

    [Theory]
    [MemberData(nameof(Steps))]
    public async Task An_interruption_leaves_a_folder_that_runs_and_that_the_next_run_finishes(string step, bool restoring)
    {
        using SampleFolder folder = new(Libraries);
        SortedDictionary<string, string> before = folder.Contents();
        if (restoring)
        {
            Weave(folder, null);
        }

        Interrupt(folder, step, restoring);

        string[] streams = (await folder.RunAsync((Application.DirectVariable, "1"))).TrimEnd('\n').Split('\n');
        Assert.Equal(Libraries, streams.Length);
        Assert.All(streams, s => Assert.True(s is "SslStream" or "KtlsStream", s));

        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        Assert.Equal("KtlsStream\nKtlsStream\nKtlsStream\n", await folder.RunAsync((Application.DirectVariable, "1")));
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);
        Assert.Equal(before, folder.Contents());
    }

    [Theory]
    [MemberData(nameof(Steps))]
    public async Task An_interruption_can_be_undone_at_once(string step, bool restoring)
    {
        using SampleFolder folder = new(Libraries);
        SortedDictionary<string, string> before = folder.Contents();
        if (restoring)
        {
            Weave(folder, null);
        }

        Interrupt(folder, step, restoring);

        Ktls.Result undone = await folder.WeaveAsync("--undo");

        // The very last step leaves nothing to undo.
        Assert.True(undone.ExitCode == ExitCode.Ok || !Directory.Exists(folder.Path(FolderJournal.Folder)), undone.Errors);
        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public void Only_one_process_changes_a_folder()
    {
        using SampleFolder folder = new();
        using FolderTransaction first = new(folder.FullName);

        Assert.StartsWith("another ktls is changing ", Assert.Throws<FolderRefusedException>(() => new FolderTransaction(folder.FullName)).Message, StringComparison.Ordinal);
    }

    /// <summary>Where new contents cannot be written nothing is left behind.</summary>
    [Fact]
    public void A_failure_before_the_first_change_leaves_nothing()
    {
        using SampleFolder folder = new();
        SortedDictionary<string, string> before = folder.Contents();
        using FolderTransaction transaction = new(folder.FullName, s => _ = s == "stage b" ? throw new IOException("full") : 0);

        Assert.Throws<IOException>(() => transaction.Apply([new("a", [1]), new("b", [2])], "app.dll", null));

        Assert.Equal(before, folder.Contents());
    }

    /// <summary>A deployment between an interruption and the next run is newer than what was staged.</summary>
    [Fact]
    public async Task A_file_that_was_deployed_after_an_interruption_stays()
    {
        using SampleFolder folder = new(Libraries);
        byte[] library = File.ReadAllBytes(folder.Path("Library1.dll"));
        Interrupt(folder, "replace Library0.dll", restoring: false);
        File.WriteAllBytes(folder.Path("Library1.dll"), [.. library, 0]);

        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);

        Assert.Equal([.. library, 0], File.ReadAllBytes(folder.Path("Library1.dll")));
    }

    private static void Weave(SampleFolder folder, Action<string>? reached)
    {
        FolderWeaver weaver = FolderWeaver.Weave(PublishedFolder.Open(folder.FullName), BundleFolder.Open(), new WeaveRequest([], false, false), null);
        using FolderTransaction transaction = new(folder.FullName, reached);
        transaction.Apply(weaver.Files, "app.dll", FolderJournal.Read(folder.FullName));
    }

    private static void Interrupt(SampleFolder folder, string step, bool restoring) => Assert.Throws<OperationCanceledException>(() =>
    {
        if (restoring)
        {
            using FolderTransaction transaction = new(folder.FullName, Stop);
            transaction.Restore(FolderJournal.Read(folder.FullName)!);
        }
        else
        {
            Weave(folder, Stop);
        }

        void Stop(string reached)
        {
            if (reached == step)
            {
                throw new OperationCanceledException(step);
            }
        }
    });
}
