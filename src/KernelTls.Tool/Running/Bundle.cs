using System.Reflection;

namespace KernelTls.Tool.Running;

/// <summary>Represents a folder with the start-up hook and what it needs.</summary>
internal sealed class Bundle
{
    public const string HookName = "KernelTls.StartupHook.dll";

    private static readonly string[] s_assemblies = [HookName, "KernelTls.dll", "KernelTls.AspNetCore.dll", "KernelTls.Hosting.dll"];

    /// <param name="path">The folder, or null for the one beside the tool.</param>
    public Bundle(string? path) => FullPath = Path.GetFullPath(path ?? Path.Combine(AppContext.BaseDirectory, "bundle"));

    /// <summary>Gets the absolute path of the folder.</summary>
    public string FullPath { get; }

    /// <summary>Gets the absolute path of the hook.</summary>
    public string Hook => Path.Combine(FullPath, HookName);

    /// <summary>Returns why an application must not get the hook, or null. A hook that .NET cannot load ends the process.</summary>
    public string? FindFault()
    {
        if (FullPath.Contains(':', StringComparison.Ordinal))
        {
            return $"The path of the bundle, {FullPath}, has a colon, which separates the paths of start-up hooks.";
        }

        Version? version = null;
        foreach (string name in s_assemblies)
        {
            string path = Path.Combine(FullPath, name);
            try
            {
                Version? found = AssemblyName.GetAssemblyName(path).Version;
                version ??= found;
                if (found != version)
                {
                    return $"{path} is version {found}, and {HookName} is version {version}. Copy the whole bundle: ktls bundle DIR.";
                }
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException or BadImageFormatException)
            {
                return $"{path} cannot be read. {e.Message} Copy the whole bundle: ktls bundle DIR.";
            }
        }

        string shim = Path.Combine(FullPath, NativeShim.RelativePath);
        return File.Exists(shim) ? null : $"{shim} is missing: the bundle has nothing for this platform.";
    }

    /// <summary>Copies the bundle to a folder, which appears when it is complete.</summary>
    /// <param name="target">The folder, which must not exist, or be empty.</param>
    /// <exception cref="ToolFailedException">The folder cannot be written, or has files.</exception>
    public void CopyTo(string target)
    {
        if (FindFault() is { } fault)
        {
            throw new ToolFailedException(ExitCode.Failed, fault);
        }

        string full = Path.GetFullPath(target).TrimEnd('/');
        string temporary = $"{full}.{Environment.ProcessId}.new";
        try
        {
            if (Directory.Exists(full) && Directory.EnumerateFileSystemEntries(full).Any())
            {
                throw new ToolFailedException(ExitCode.Failed, $"'{full}' has files: expected a folder that is empty, or that does not exist. A process that uses the files would notice a change.");
            }

            foreach (string file in Directory.EnumerateFiles(FullPath, "*", SearchOption.AllDirectories))
            {
                string copy = Path.Combine(temporary, Path.GetRelativePath(FullPath, file));
                Directory.CreateDirectory(Path.GetDirectoryName(copy)!);
                File.Copy(file, copy);
            }

            if (Directory.Exists(full))
            {
                Directory.Delete(full);
            }

            Directory.Move(temporary, full);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            Discard(temporary);
            throw new ToolFailedException(ExitCode.Failed, $"the bundle cannot be copied to '{full}': {e.Message}", e);
        }
    }

    private static void Discard(string folder)
    {
        try
        {
            Directory.Delete(folder, recursive: true);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // What was wrong is reported already.
        }
    }
}
