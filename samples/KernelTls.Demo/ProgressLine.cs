using System.Diagnostics;

namespace KernelTls.Demo;

/// <summary>
/// Shows the progress of a download as plain text: on a terminal one line that is overwritten, otherwise a line every few
/// seconds.
/// </summary>
internal sealed class ProgressLine
{
    private readonly TextWriter _output;
    private readonly string _label;
    private readonly string _total;
    private readonly bool _isTerminal = !Console.IsOutputRedirected;
    private readonly TimeSpan _interval;
    private readonly Stopwatch _sinceLast = Stopwatch.StartNew();
    private int _width;

    public ProgressLine(TextWriter output, string label, long total)
    {
        _output = output;
        _label = label;
        _total = $"{total:N0}";
        _interval = _isTerminal ? TimeSpan.FromMilliseconds(100) : TimeSpan.FromSeconds(5);
    }

    public void Report(long received)
    {
        if (_sinceLast.Elapsed < _interval)
        {
            return;
        }

        _sinceLast.Restart();
        string line = $"  {_label}: {received:N0} of {_total} bytes";
        if (_isTerminal)
        {
            _output.Write('\r' + line.PadRight(_width));
            _width = line.Length;
        }
        else
        {
            _output.WriteLine(line);
        }
    }

    /// <summary>Clears the line, so that other output can follow.</summary>
    public void Clear()
    {
        if (_width > 0)
        {
            _output.Write('\r' + new string(' ', _width) + '\r');
            _width = 0;
        }
    }
}
