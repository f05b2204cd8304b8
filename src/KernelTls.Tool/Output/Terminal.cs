using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Serialization;
using Spectre.Console;

namespace KernelTls.Tool.Output;

/// <summary>
/// Where a command's words go: to people as text, plain where standard output is piped or NO_COLOR is set, or to programs as
/// JSON. Thread-safe. What peers say is made harmless: a line stays one line, in its order. So the tool's own lines are written one
/// at a time.
/// </summary>
internal sealed class Terminal
{
    private const int PipedWidth = 10_000; // nothing is wrapped
    private static readonly JsonSerializerOptions s_document = Options(indented: true);
    private static readonly JsonSerializerOptions s_line = Options(indented: false);
    private readonly Lock _lock = new();

    public Terminal(bool json)
    {
        IsJson = json;
        IsPlain = Console.IsOutputRedirected || !string.IsNullOrEmpty(Environment.GetEnvironmentVariable("NO_COLOR"));
        Text = AnsiConsole.Create(new AnsiConsoleSettings
        {
            Ansi = IsPlain ? AnsiSupport.No : AnsiSupport.Detect,
            ColorSystem = IsPlain ? ColorSystemSupport.NoColors : ColorSystemSupport.Detect,
            Interactive = IsPlain ? InteractionSupport.No : InteractionSupport.Detect,
        });
        if (Console.IsOutputRedirected)
        {
            Text.Profile.Width = PipedWidth;
        }
    }

    /// <summary>Programs read it.</summary>
    public bool IsJson { get; }

    /// <summary>No colours, frames or moving parts.</summary>
    public bool IsPlain { get; }

    /// <summary>Spectre's console, for what only a screen has: live tables, progress.</summary>
    public IAnsiConsole Text { get; }

    /// <summary>One JSON document, as the command's whole result.</summary>
    public void Document(object report) => Write(Console.Out, Serialize(report, s_document));

    /// <summary>One JSON object on a line of its own, for what goes on.</summary>
    /// <param name="report">What to write.</param>
    /// <param name="toErrors">Standard output holds something else.</param>
    public void JsonLine(object report, bool toErrors = false) =>
        Write(toErrors ? Console.Error : Console.Out, Serialize(report, s_line));

    public void Line(string text = "") => Write(Console.Out, Harmless(text));

    public void ErrorLine(string text) => Write(Console.Error, Harmless(text));

    /// <summary>A line that carries the message of a report, in colour on a screen.</summary>
    public void Headline(string text, Style style)
    {
        if (IsPlain)
        {
            Line(text);
            return;
        }

        lock (_lock)
        {
            Text.Write(new Text(Harmless(text) + "\n", style));
        }
    }

    /// <summary>A table; piped, columns without a frame.</summary>
    public void Table(string[] headers, IEnumerable<string[]> rows)
    {
        lock (_lock)
        {
            Text.Write(NewTable(headers, rows));
        }
    }

    /// <inheritdoc cref="Table"/>
    public Table NewTable(string[] headers, IEnumerable<string[]> rows)
    {
        Table table = new() { Border = IsPlain ? TableBorder.None : TableBorder.Rounded, UseSafeBorder = true };
        foreach (string header in headers)
        {
            table.AddColumn(new TableColumn(new Text(header, IsPlain ? Style.Plain : new Style(decoration: Decoration.Bold))));
        }

        foreach (string[] row in rows)
        {
            table.AddRow(row.Select(cell => new Text(Harmless(cell))));
        }

        return table;
    }

    public void Fail(string command, ToolFailedException failure)
    {
        if (IsJson)
        {
            JsonLine(new { error = failure.Message, exitCode = failure.ExitCode }, toErrors: command == "connect");
        }

        if (!IsJson || command != "connect")
        {
            ErrorLine($"ktls {command}: {failure.Message}");
        }
    }

    /// <summary>
    /// The text without anything that a terminal would obey, that would end the line, or that would change the order in which it
    /// is read: such characters become question marks.
    /// </summary>
    public static string Harmless(string text) => text.Any(IsHarmful)
        ? string.Create(text.Length, text, (to, from) =>
        {
            for (int i = 0; i < to.Length; i++)
            {
                to[i] = IsHarmful(from[i]) ? '?' : from[i];
            }
        })
        : text;

    private static bool IsHarmful(char c) => char.GetUnicodeCategory(c) is
        UnicodeCategory.Control or UnicodeCategory.Format or UnicodeCategory.LineSeparator or UnicodeCategory.ParagraphSeparator;

    /// <summary>The encoder escapes control characters and separators; those that change the reading order only occur in strings.</summary>
    private static string Serialize(object report, JsonSerializerOptions options)
    {
        string json = JsonSerializer.Serialize(report, options);
        return json.Any(IsReordering)
            ? string.Concat(json.Select(c => IsReordering(c) ? string.Create(CultureInfo.InvariantCulture, $"\\u{(int)c:x4}") : $"{c}"))
            : json;

        static bool IsReordering(char c) => char.GetUnicodeCategory(c) == UnicodeCategory.Format;
    }

    private static JsonSerializerOptions Options(bool indented) => new(JsonSerializerDefaults.Web)
    {
        WriteIndented = indented,
        Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, // not for HTML
        Converters = { new JsonStringEnumConverter() },
    };

    private void Write(TextWriter writer, string line)
    {
        lock (_lock)
        {
            writer.WriteLine(line);
            writer.Flush();
        }
    }
}
