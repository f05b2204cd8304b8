using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Serialization;
using Spectre.Console;

namespace KernelTls.Tool.Output;

/// <summary>
/// Writes a command's output: as text, which is plain if standard output is redirected or NO_COLOR is set, or as JSON.
/// Thread-safe.
/// </summary>
/// <remarks>
/// Text from peers is sanitized, so that a line stays one line and is read in its order. The tool's own lines must
/// therefore be written one at a time.
/// </remarks>
internal sealed class Terminal
{
    private const int PipedWidth = 10_000; // no wrapping
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

    /// <summary>Gets a value that indicates whether the output is JSON.</summary>
    public bool IsJson { get; }

    /// <summary>Gets a value that indicates whether the output has no colors, frames or animations.</summary>
    public bool IsPlain { get; }

    /// <summary>Gets Spectre's console, for live tables and progress bars.</summary>
    public IAnsiConsole Text { get; }

    /// <summary>Writes one JSON document as the command's complete result.</summary>
    public void Document(object report) => Write(Console.Out, Serialize(report, s_document));

    /// <summary>Writes one JSON object on its own line, for continuous output.</summary>
    /// <param name="report">The object to write.</param>
    /// <param name="toErrors">Whether to write to standard error, because standard output is used otherwise.</param>
    public void JsonLine(object report, bool toErrors = false) =>
        Write(toErrors ? Console.Error : Console.Out, Serialize(report, s_line));

    public void Line(string text = "") => Write(Console.Out, Harmless(text));

    public void ErrorLine(string text) => Write(Console.Error, Harmless(text));

    /// <summary>Writes the main line of a report, in color on a terminal.</summary>
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

    /// <summary>Writes a table. Redirected output has columns without a frame.</summary>
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

    /// <summary>Writes why a command has ended: a line on standard error, and as JSON an object in the command's output.</summary>
    public void Fail(string command, ToolFailedException failure)
    {
        object report = new { error = failure.Message, exitCode = failure.ExitCode };
        if (IsJson && command == "connect")
        {
            JsonLine(report, toErrors: true);
            return;
        }

        ErrorLine($"{$"ktls {command}".TrimEnd()}: {failure.Message}");
        if (IsJson)
        {
            try
            {
                JsonLine(report);
            }
            catch (ToolFailedException)
            {
                // Standard output is what failed, and that is in the line above.
            }
        }
    }

    /// <summary>
    /// Replaces characters by question marks if they could control the terminal, end the line or change the reading
    /// order.
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

    /// <summary>
    /// Serializes an object. The encoder escapes control characters and separators. Characters that change the reading
    /// order are escaped here; they occur only in strings.
    /// </summary>
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
