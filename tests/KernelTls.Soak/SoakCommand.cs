using System.CommandLine;
using System.CommandLine.Parsing;

namespace KernelTls.Soak;

/// <summary>Defines the command line.</summary>
internal static class SoakCommand
{
    public static RootCommand Create()
    {
        Option<double> minutes = new("--minutes")
        {
            Description = "How long the clients run. Measuring and closing take a little more.",
            DefaultValueFactory = _ => 60,
        };
        minutes.Validators.Add(Within(0.5, 10_000));
        Option<double> cores = new("--cores")
        {
            Description = "How many processors the process uses at most, on average.",
            DefaultValueFactory = _ => 16,
        };
        cores.Validators.Add(Within(0.05, 1_000));
        Option<SoakMode> mode = new("--mode")
        {
            Description = "Who encrypts: Kernel, OpenSsl or Stock. Kernel fails where the kernel has no TLS.",
            DefaultValueFactory = _ => SoakMode.Kernel,
        };
        Option<int> seed = new("--seed")
        {
            Description = "What the clients choose by. Timing differs from run to run all the same.",
            DefaultValueFactory = _ => Random.Shared.Next(),
        };
        Option<Fault> fault = new("--break")
        {
            Description = "Does something wrong on purpose, to show that it is seen: Descriptor, Connection, Socket, Memory, Byte or Hang.",
        };

        RootCommand command = new("Runs clients against servers, and checks that payloads are right and that nothing is left behind.")
        {
            minutes, cores, mode, seed, fault,
        };
        command.SetAction(async (arguments, _) =>
        {
            using SoakRun run = new(new SoakOptions(
                TimeSpan.FromMinutes(arguments.GetValue(minutes)),
                arguments.GetValue(cores),
                arguments.GetValue(mode),
                arguments.GetValue(seed),
                arguments.GetValue(fault)));
            return await run.RunAsync();
        });
        return command;
    }

    private static Action<OptionResult> Within(double least, double most) => result =>
    {
        if (result.GetValueOrDefault<double>() is var value && !(value >= least && value <= most))
        {
            result.AddError($"{result.Option.Name} is {value}; expected a number from {least} to {most}.");
        }
    };
}
