using System.Globalization;
using System.Text;

namespace KernelTls.Bench;

/// <summary>Describes the threads of a process and of its descendants, for a measurement that does not end.</summary>
internal static class ThreadStates
{
    private const string Processes = "/proc";

    /// <summary>
    /// Returns a line for each thread with its name, its state, the kernel function in which it waits, and its
    /// processor time.
    /// </summary>
    public static string Describe(int processId)
    {
        StringBuilder text = new();
        foreach (string process in FamilyOf(processId))
        {
            string command = Read(Path.Combine(process, "cmdline")).Replace('\0', ' ').Trim();
            text.Append(CultureInfo.InvariantCulture, $"\n{Path.GetFileName(process)} {command}");
            foreach (string thread in List(Path.Combine(process, "task")))
            {
                text.Append(
                    CultureInfo.InvariantCulture,
                    $"\n  {Read(Path.Combine(thread, "comm"))} {StateOf(thread)} {Read(Path.Combine(thread, "wchan"))} {(long)UsedBy(thread).TotalMilliseconds} ms");
            }
        }

        return text.ToString();
    }

    /// <summary>Returns the processor time of a thread, or zero if it has ended.</summary>
    internal static TimeSpan UsedBy(string thread)
    {
        string[] schedule = Read(Path.Combine(thread, "schedstat")).Split(' ');
        _ = long.TryParse(schedule[0], NumberStyles.None, CultureInfo.InvariantCulture, out long used);
        return TimeSpan.FromTicks(used / TimeSpan.NanosecondsPerTick);
    }

    private static List<string> FamilyOf(int processId)
    {
        List<string> family = [Path.Combine(Processes, $"{processId}")];
        for (int i = 0; i < family.Count; i++)
        {
            string children = string.Join(' ', List(Path.Combine(family[i], "task")).Select(thread => Read(Path.Combine(thread, "children"))));
            family.AddRange(children.Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(child => Path.Combine(Processes, child)));
        }

        return family;
    }

    /// <summary>Returns the letter after the name in the thread's stat file (proc_pid_stat(5)).</summary>
    private static char StateOf(string thread)
    {
        string stat = Read(Path.Combine(thread, "stat"));
        int state = stat.LastIndexOf(')') + 2;
        return state < stat.Length ? stat[state] : '?';
    }

    /// <summary>Lists the entries of a directory. Processes and threads can end during the call.</summary>
    internal static string[] List(string directory)
    {
        try
        {
            return Directory.GetDirectories(directory);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return [];
        }
    }

    internal static string Read(string path)
    {
        try
        {
            return File.ReadAllText(path).Trim();
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return "";
        }
    }
}
