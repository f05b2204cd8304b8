using Microsoft.Build.Framework;

namespace KernelTls.Weave;

/// <summary>Weaves the project's own assembly, in the compiler's output under obj/, if the project names it.</summary>
public sealed class WeaveProject : WeaveTask
{
    /// <summary>Gets or sets the assembly.</summary>
    [Required]
    public string Assembly { get; set; } = "";

    /// <summary>Gets or sets the references that the project was compiled with, including the library.</summary>
    [Required]
    public ITaskItem[] References { get; set; } = [];

    /// <inheritdoc/>
    public override bool Execute()
    {
        string? library = References.FirstOrDefault(r => ItemPath.FileOf(r.ItemSpec) == Replacements.Library + ".dll")?.ItemSpec;
        if (!new Selection(Wanted).Names(ProjectAssembly))
        {
            return true;
        }

        if (ReadReplacements(library) is not { } replacements)
        {
            return false;
        }

        // If nothing was compiled, it is the woven one of an earlier build.
        WovenFile file = WeaveFile(Assembly, Assembly, replacements);
        Report(ProjectAssembly, file, isNew: true);
        if (file.HasNothing)
        {
            WarnOfNothing(ProjectAssembly);
        }

        return !Log.HasLoggedErrors;
    }
}
