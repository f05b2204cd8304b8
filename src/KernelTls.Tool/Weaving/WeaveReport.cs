using KernelTls.Tool.Output;
using KernelTls.Weave;

namespace KernelTls.Tool.Weaving;

/// <summary>What was or would be changed in a folder: the JSON document, and the source of the text.</summary>
/// <param name="Folder">The folder.</param>
/// <param name="DryRun">Whether nothing was changed.</param>
/// <param name="Assemblies">The assemblies that are woven, or were before.</param>
/// <param name="Added">The files that are added.</param>
/// <param name="Edited">The other files that are changed.</param>
internal sealed record WeaveReport(
    string Folder, bool DryRun, IReadOnlyList<WovenAssembly> Assemblies, IReadOnlyList<string> Added, IReadOnlyList<string> Edited)
{
    /// <summary>Creates the report.</summary>
    public static WeaveReport Of(string folder, bool dryRun, FolderWeaver weaver)
    {
        HashSet<string> woven = [.. weaver.Assemblies.Where(a => a.Image is not null).Select(a => a.Path)];
        string[] others = [.. weaver.Files.Select(f => f.Path).Where(f => !woven.Contains(f))];
        return new WeaveReport(
            folder,
            dryRun,
            [.. weaver.Assemblies.Where(a => a.Image is not null || a.WasWoven || a.Problems.Count != 0)],
            [.. others.Where(f => !f.EndsWith(".json", StringComparison.Ordinal))],
            [.. others.Where(f => f.EndsWith(".json", StringComparison.Ordinal))]);
    }

    /// <summary>Writes the report.</summary>
    public void Show(Terminal terminal)
    {
        if (terminal.IsJson)
        {
            terminal.Document(this);
            return;
        }

        foreach (WovenAssembly assembly in Assemblies)
        {
            terminal.Line($"{assembly.Path}: {Describe(assembly)}");
            foreach (string place in DryRun ? assembly.Places : [])
            {
                terminal.Line($"    {place}");
            }

            foreach (string problem in assembly.Problems)
            {
                terminal.Line($"    {problem}, which cannot be woven. It stays with SslStream.");
            }
        }

        if (Added.Count != 0)
        {
            terminal.Line($"added: {string.Join(", ", Added)}");
        }

        if (Edited.Count != 0)
        {
            terminal.Line($"changed: {string.Join(", ", Edited)}");
        }

        bool isChanged = Assemblies.Any(a => a.Image is not null);
        terminal.Line(
            !isChanged ? Assemblies.Any(a => a.WasWoven) ? "Nothing to do: the folder is woven." : "There is nothing to weave: no assembly makes an SslStream, an HttpClient or a handler."
            : DryRun ? "Nothing was changed."
            : "Woven. DOTNET_SYSTEM_NET_SECURITY_KTLS=1 switches it on, and --undo restores the files.");
    }

    private static string Describe(WovenAssembly assembly)
    {
        List<string> words = [];
        if (assembly.Places.Count != 0)
        {
            words.Add($"{assembly.Places.Count} {(assembly.Places.Count == 1 ? "place" : "places")}");
        }

        if (assembly.AddsStartup)
        {
            words.Add($"the start-up class of {HostingStartup.Library}");
        }

        if (assembly.RemovesNativeCode)
        {
            words.Add("its native code is removed");
        }

        if (assembly.WasWoven)
        {
            words.Insert(0, "woven before");
        }

        return string.Join(", ", words);
    }
}
