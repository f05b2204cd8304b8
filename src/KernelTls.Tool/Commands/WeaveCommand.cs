using System.CommandLine;
using KernelTls.Tool.Output;
using KernelTls.Tool.Weaving;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls weave</c>, which rewrites the assemblies of a published folder.</summary>
internal static class WeaveCommand
{
    public static Command Create()
    {
        Argument<string> directory = new("DIR") { Description = "The folder that dotnet publish has written." };
        directory.Validators.Add(result =>
        {
            if (result.Tokens is [{ Value: { } value }] && !Directory.Exists(value))
            {
                result.AddError($"'{value}': expected a directory that exists.");
            }
        });
        Option<string[]> include = new("--include")
        {
            Description = "Weave these assemblies only: their names without .dll. Default: the application's own and its libraries.",
            HelpName = "NAME",
            AllowMultipleArgumentsPerToken = true,
        };
        Option<bool> all = new("--all") { Description = "Weave every assembly in the folder, also those that the deps.json does not list, such as plug-ins." };
        Option<bool> dryRun = new("--dry-run") { Description = "Change nothing, and list by assembly and place what would change." };
        Option<bool> undo = new("--undo") { Description = "Restore the files as they were, and remove what was added." };
        Option<bool> strip = new("--strip")
        {
            Description = "Weave assemblies with native code (ReadyToRun) too, and remove that code. The runtime then compiles them at each start, which takes longer.",
        };
        Command command = new(
            "weave",
            "Rewrites the assemblies of a published folder so that their TLS connections can use kernel TLS. Without the variables the application behaves as before.")
        {
            directory, include, all, dryRun, undo, strip,
        };
        command.Validators.Add(result =>
        {
            if (result.GetResult(include) is not null && result.GetValue(all))
            {
                result.AddError("--include names assemblies, and --all means every one: expected one of the two.");
            }

            if (result.GetValue(undo) && (result.GetResult(include) is not null || result.GetValue(all) || result.GetValue(dryRun) || result.GetValue(strip)))
            {
                result.AddError("--undo restores the whole folder: expected no other option.");
            }
        });
        command.SetWork((arguments, terminal, _) => Task.FromResult(Run(
            PublishedFolder.RealPath(arguments.GetValue(directory)!),
            folder => arguments.GetValue(undo)
                ? Undo(folder, terminal)
                : Weave(
                    folder,
                    BundleFolder.Open(),
                    new WeaveRequest(arguments.GetValue(include) ?? [], arguments.GetValue(all), arguments.GetValue(strip)),
                    arguments.GetValue(dryRun),
                    terminal))));
        return command;
    }

    private static int Run(string folder, Func<string, int> work)
    {
        try
        {
            return work(folder);
        }
        catch (FolderRefusedException e)
        {
            throw new ToolFailedException(ExitCode.No, $"{e.Message} Nothing was changed.", e);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw new ToolFailedException(ExitCode.Failed, $"{folder} cannot be changed: {e.Message.TrimEnd('.')}.", e);
        }
    }

    private static int Weave(string folder, BundleFolder bundle, WeaveRequest request, bool dryRun, Terminal terminal)
    {
        FolderJournal? journal = FolderJournal.Read(folder);
        if (journal is { State: not FolderState.Woven })
        {
            journal = dryRun
                ? throw new FolderRefusedException("an earlier 'ktls weave' was interrupted. Run it again, or with --undo.")
                : FinishEarlier(folder, journal);
        }

        if (journal is not null && journal.Version < FolderJournal.CurrentVersion)
        {
            throw new FolderRefusedException($"{folder} was woven by ktls {journal.Version.ToString(3)}. Restore it by --undo, and weave it again.");
        }

        PublishedFolder published = PublishedFolder.Open(folder);
        FolderWeaver weaver = FolderWeaver.Weave(published, bundle, request, journal);
        ThrowIfRunning(folder);
        if (!dryRun && weaver.Files.Count != 0)
        {
            using FolderTransaction transaction = new(folder);
            transaction.Apply(weaver.Files, published.Applications[0].EntryFile, journal);
        }

        WeaveReport report = WeaveReport.Of(folder, dryRun, weaver);
        report.Show(terminal);
        return weaver.Files.Count != 0 || weaver.Assemblies.Any(a => a.WasWoven) ? ExitCode.Ok : ExitCode.No;
    }

    private static int Undo(string folder, Terminal terminal)
    {
        FolderJournal? journal = FolderJournal.Read(folder);
        if (journal is null && !Directory.Exists(Path.Combine(folder, FolderJournal.Folder)))
        {
            throw new FolderRefusedException($"{folder} was not woven by 'ktls weave', or its subfolder {FolderJournal.Folder} is gone.");
        }

        ThrowIfRunning(folder);
        using FolderTransaction transaction = new(folder);
        if (journal is { State: FolderState.Weaving })
        {
            transaction.Complete(journal);
            journal = FolderJournal.Read(folder)!;
        }

        (IReadOnlyList<string> restored, IReadOnlyList<string> removed) = ([], []);
        if (journal is null)
        {
            // The earlier run ended before it changed anything.
            transaction.Forget();
        }
        else
        {
            (restored, removed) = transaction.Restore(journal);
        }

        if (terminal.IsJson)
        {
            terminal.Document(new { folder, restored, removed });
            return ExitCode.Ok;
        }

        terminal.Line($"{folder} is as it was: {restored.Count} files restored, {removed.Count} removed.");
        foreach (string file in journal?.Files.Select(f => f.Path).Except(restored).Except(removed) ?? [])
        {
            terminal.Line($"  {file}: changed since it was woven, left as it is");
        }

        return ExitCode.Ok;
    }

    /// <summary>Finishes what an interrupted run began, and returns the journal after it.</summary>
    private static FolderJournal? FinishEarlier(string folder, FolderJournal journal)
    {
        ThrowIfRunning(folder);
        using FolderTransaction transaction = new(folder);
        if (journal.State == FolderState.Weaving)
        {
            transaction.Complete(journal);
        }
        else
        {
            transaction.Restore(journal);
        }

        return FolderJournal.Read(folder);
    }

    private static void ThrowIfRunning(string folder)
    {
        if (RunningProcesses.FindIn(folder) is (int process, string file))
        {
            throw new FolderRefusedException($"process {process} runs from {folder} (it has mapped {file}). Stop it first.");
        }
    }
}
