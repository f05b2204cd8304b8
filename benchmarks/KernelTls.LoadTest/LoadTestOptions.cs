using System.CommandLine;
using System.CommandLine.Parsing;
using System.Globalization;

namespace KernelTls.LoadTest;

/// <summary>
/// Creates options with the names of the variables in the reference scenarios. The options reject values that would
/// measure something other than the requested scenario.
/// </summary>
internal static class LoadTestOptions
{
    public static Option<string> ServerAddress() => new("--serverAddress")
    {
        Description = "The server's address, or a name for it.",
        DefaultValueFactory = _ => "127.0.0.1",
    };

    /// <param name="lowest">The lowest port. It is 0 if the system may choose the port.</param>
    public static Option<int> ServerPort(int lowest) => Number("--serverPort", 5000, lowest, ushort.MaxValue, "The server's TCP port.");

    public static Option<double> Warmup() => Seconds("--warmup", 15, 0, "Seconds before anything counts; goes on until something was done.");

    public static Option<double> Duration() => Seconds("--duration", 15, 0.1, "Seconds that count; goes on until something was done.");

    public static Option<int> Number(string name, int value, int lowest, int highest, string description)
    {
        Option<int> option = new(name) { Description = description, DefaultValueFactory = _ => value };
        option.Validators.Add(result =>
        {
            // The parser rejects values that are not numbers.
            if (result.Tokens is [{ } token] && int.TryParse(token.Value, out int number) && (number < lowest || number > highest))
            {
                result.AddError($"{name} is {number}; expected {lowest} to {highest}.");
            }
        });
        return option;
    }

    /// <summary>Creates an option for sizes in bytes with commas between. The default is 0 alone.</summary>
    public static Option<int[]> Sizes(string name, string description)
    {
        Option<int[]> option = new(name)
        {
            Description = description,
            DefaultValueFactory = _ => [0],
            Arity = ArgumentArity.ExactlyOne,
            CustomParser = result => [.. result.Tokens[0].Value.Split(',')
                .Select(word => int.TryParse(word, NumberStyles.None, CultureInfo.InvariantCulture, out int size) ? size : -1)],
        };
        option.Validators.Add(result =>
        {
            if (Array.Exists(result.GetValueOrDefault<int[]>()!, size => size < 0))
            {
                result.AddError($"{name} is {result.Tokens[0].Value}; expected sizes of 0 to {int.MaxValue} with commas between.");
            }
        });
        return option;
    }

    public static Option<bool> Switch(string name, bool value, string description) =>
        new(name) { Description = description, DefaultValueFactory = _ => value, Arity = ArgumentArity.ExactlyOne };

    /// <summary>Creates an option that accepts one of the given names. The first name is the default.</summary>
    public static Option<string> Choice(string name, string description, params string[] names)
    {
        Option<string> option = new(name) { Description = description, DefaultValueFactory = _ => names[0] };
        option.AcceptOnlyFromAmong(names);
        return option;
    }

    /// <summary>
    /// Returns the value of an option, or its default. While a command is validated, an option that was not given has
    /// no value yet.
    /// </summary>
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
