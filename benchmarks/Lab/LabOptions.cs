using System.CommandLine;
using System.CommandLine.Parsing;

namespace KernelTls.Lab;

/// <summary>
/// Options that are named as the variables of the reference scenarios, and take no value that would measure something else
/// than was asked for.
/// </summary>
internal static class LabOptions
{
    public static Option<string> ServerAddress() => new("--serverAddress")
    {
        Description = "The server's address, or a name for it.",
        DefaultValueFactory = _ => "127.0.0.1",
    };

    /// <param name="lowest">Zero where the system may choose.</param>
    public static Option<int> ServerPort(int lowest) => Number("--serverPort", 5000, lowest, ushort.MaxValue, "The server's TCP port.");

    public static Option<double> Warmup() => Seconds("--warmup", 15, 0, "Seconds before anything counts; goes on until something was done.");

    public static Option<double> Duration() => Seconds("--duration", 15, 0.1, "Seconds that count; goes on until something was done.");

    public static Option<int> Number(string name, int value, int lowest, int highest, string description)
    {
        Option<int> option = new(name) { Description = description, DefaultValueFactory = _ => value };
        option.Validators.Add(result =>
        {
            // What is no number is the parser's to refuse.
            if (result.Tokens is [{ } token] && int.TryParse(token.Value, out int number) && (number < lowest || number > highest))
            {
                result.AddError($"{name} is {number}; expected {lowest} to {highest}.");
            }
        });
        return option;
    }

    public static Option<bool> Switch(string name, bool value, string description) =>
        new(name) { Description = description, DefaultValueFactory = _ => value, Arity = ArgumentArity.ExactlyOne };

    /// <summary>One of a few names; the first is the default.</summary>
    public static Option<string> Choice(string name, string description, params string[] names)
    {
        Option<string> option = new(name) { Description = description, DefaultValueFactory = _ => names[0] };
        option.AcceptOnlyFromAmong(names);
        return option;
    }

    /// <summary>While a command is validated, an option that was not given has no value yet.</summary>
    public static T ValueOf<T>(this CommandResult result, Option<T> option) =>
        (result.GetResult(option) is { Implicit: false } given ? given.GetValueOrDefault<T>() : (T)option.GetDefaultValue()!)!;

    private static Option<double> Seconds(string name, double value, double lowest, string description)
    {
        const double Highest = 86_400;
        Option<double> option = new(name) { Description = description, DefaultValueFactory = _ => value };
        option.Validators.Add(result =>
        {
            if (result.Tokens is [{ } token] && double.TryParse(token.Value, out double number)
                && !(number >= lowest && number <= Highest))
            {
                result.AddError($"{name} is {number}; expected {lowest} to {Highest} seconds.");
            }
        });
        return option;
    }
}
