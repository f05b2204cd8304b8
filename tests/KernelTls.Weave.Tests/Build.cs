using System.Collections;
using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave.Tests;

/// <summary>Runs a task as a build does, and records its messages.</summary>
internal sealed class Build : IBuildEngine
{
    public List<string> Warnings { get; } = [];

    public List<string> Errors { get; } = [];

    public List<string> Messages { get; } = [];

    public bool ContinueOnError => false;

    public int LineNumberOfTaskNode => 0;

    public int ColumnNumberOfTaskNode => 0;

    public string ProjectFileOfTaskNode => "app.csproj";

    public static TaskItem Item(string name, params (string Name, string Value)[] metadata)
    {
        TaskItem item = new(name);
        foreach ((string key, string value) in metadata)
        {
            item.SetMetadata(key, value);
        }

        return item;
    }

    public bool BuildProjectFile(string projectFileName, string[] targetNames, IDictionary globalProperties, IDictionary targetOutputs) => false;

    public void LogCustomEvent(CustomBuildEventArgs e)
    {
    }

    public void LogErrorEvent(BuildErrorEventArgs e) => Errors.Add($"{e.Code}: {e.Message}");

    public void LogMessageEvent(BuildMessageEventArgs e)
    {
        if (e.Importance <= MessageImportance.Normal)
        {
            Messages.Add(e.Message!);
        }
    }

    public void LogWarningEvent(BuildWarningEventArgs e) => Warnings.Add($"{e.Code}: {e.Message}");
}
