using System.CommandLine;

namespace KernelTls.Fuzz;

/// <summary>Defines the command line.</summary>
internal static class FuzzCommand
{
    private static readonly FuzzTarget[] s_targets = [new ParserTarget(), new ReceiverTarget(), new WeaverTarget()];

    public static RootCommand Create()
    {
        Argument<string> name = new("target") { Description = "What to try: " + string.Join(" or ", s_targets.Select(t => t.Name)) + "." };
        name.AcceptOnlyFromAmong([.. s_targets.Select(t => t.Name)]);
        Option<int> seconds = new("--seconds") { Description = "For how long.", DefaultValueFactory = _ => 60 };
        seconds.Validators.Add(result =>
        {
            if (result.GetValueOrDefault<int>() is < 1 or > 1_000_000)
            {
                result.AddError("--seconds expects a number from 1 to 1000000.");
            }
        });
        Option<int> seed = new("--seed")
        {
            Description = "What inputs are made from; the same one makes the same inputs.",
            DefaultValueFactory = _ => Random.Shared.Next(),
        };
        Option<DirectoryInfo> crashes = new("--crashes")
        {
            Description = "Where an input that fails is kept.",
            DefaultValueFactory = _ => new DirectoryInfo("."),
        };
        Option<FileInfo?> replay = new("--replay") { Description = "Tries this one input and no other." };

        RootCommand command = new("Tries generated inputs.") { name, seconds, seed, crashes, replay };
        command.SetAction((arguments, _) =>
        {
            FuzzTarget target = s_targets.Single(t => t.Name == arguments.GetValue(name));
            FuzzRun run = new(target, arguments.GetValue(seed), arguments.GetValue(crashes)!);
            return arguments.GetValue(replay) is { } file
                ? run.ReplayAsync(file)
                : run.RunAsync(TimeSpan.FromSeconds(arguments.GetValue(seconds)));
        });
        return command;
    }
}
