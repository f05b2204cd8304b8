using KernelTls.Weave.Images;
using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave;

/// <summary>The base of the tasks: weaves an assembly and reports the result to the build.</summary>
public abstract class WeaveTask : Microsoft.Build.Utilities.Task
{
    /// <summary>Gets or sets the names of assemblies, with the exceptions from <c>All</c> in the metadata <c>Except</c>.</summary>
    public ITaskItem[] Wanted { get; set; } = [];

    /// <summary>Gets or sets the name of the project's own assembly.</summary>
    [Required]
    public string ProjectAssembly { get; set; } = "";

    /// <summary>Weaves one assembly.</summary>
    internal static WovenFile WeaveFile(string input, string output, Replacements replacements)
    {
        string stamp = FileStamp.Of(input);
        try
        {
            WeaveResult result = AssemblyWeaver.Weave(File.ReadAllBytes(input), replacements);
            if (result.Image is { } image)
            {
                Replace(output, image);
            }

            return new WovenFile(
                input, stamp, output, result.Image is null ? null : FileStamp.Of(output), [.. result.Places], [.. result.Problems], null)
            {
                WasWoven = result.WasWoven,
            };
        }
        catch (UnsupportedImageException e)
        {
            return new WovenFile(input, stamp, output, null, [], [], e.Message);
        }
    }

    /// <summary>Reads the replacements that the library declares. Returns null, and logs an error, if the library is missing.</summary>
    internal Replacements? ReadReplacements(string? library)
    {
        if (library is null)
        {
            Error("KTLSW001", $"{Replacements.Library} is not among the assemblies of {ProjectAssembly}: woven code calls it. Reference the package {Replacements.Library}, and do not exclude its assets.");
            return null;
        }

        try
        {
            return Replacements.Read(library);
        }
        catch (BadImageFormatException e)
        {
            Error("KTLSW001", $"{library} is not a version of {Replacements.Library} that this version of {Replacements.Library}.Weave goes with. {e.Message}");
            return null;
        }
    }

    /// <summary>Reports the result for an assembly: woven members at the verbosity "normal", members that could not be woven as warnings.</summary>
    /// <param name="assembly">The assembly's name.</param>
    /// <param name="file">The result for it.</param>
    /// <param name="isNew">Whether it was woven in this build.</param>
    internal void Report(string assembly, WovenFile file, bool isNew)
    {
        if (file.Refusal is { } refusal)
        {
            Warn("KTLSW002", $"{assembly} cannot be woven, because {refusal}: {file.Input}. Its TLS connections stay with SslStream.");
        }
        else if (file.WasWoven)
        {
            LogMessage($"{assembly}: woven already, left as it is");
        }
        else if (file.HasNothing)
        {
            LogMessage($"{assembly}: nothing to weave");
        }

        foreach (string problem in file.Problems)
        {
            Warn("KTLSW003", $"{assembly}: {problem}, which cannot be woven. It stays with SslStream.");
        }

        if (file.OutputStamp is not null)
        {
            LogMessage($"{assembly}: {file.Places.Length} {(file.Places.Length == 1 ? "place" : "places")}{(isNew ? "" : ", woven before")}");
            foreach (string place in file.Places)
            {
                Log.LogMessage(MessageImportance.Normal, "    {0}", place);
            }
        }
    }

    /// <summary>Warns that an assembly which the project names has no place to weave.</summary>
    internal void WarnOfNothing(string assembly) => Warn(
        "KTLSW004", $"There is nothing to weave in {assembly}: it makes no SslStream, HttpClient or handler itself. Perhaps an assembly that it uses does.");

    /// <summary>Logs the result for an assembly, at the verbosity "normal".</summary>
    internal void LogMessage(string message) => Log.LogMessage(MessageImportance.Normal, "KernelTls.Weave: {0}", message);

    /// <summary>Logs a warning.</summary>
    internal void Warn(string code, string message) => Log.LogWarning(null, code, null, null, 0, 0, 0, 0, "{0}", message);

    private void Error(string code, string message) => Log.LogError(null, code, null, null, 0, 0, 0, 0, "{0}", message);

    /// <summary>Writes a temporary file, then renames it: no build sees a part of an assembly.</summary>
    private static void Replace(string path, byte[] content)
    {
        Directory.CreateDirectory(Path.GetDirectoryName(path)!);
        string temporary = path + ".new";
        File.WriteAllBytes(temporary, content);
        File.Move(temporary, path, overwrite: true);
    }
}
