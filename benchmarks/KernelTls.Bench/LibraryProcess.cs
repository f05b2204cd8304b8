using System.Diagnostics;
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Text.Json.Nodes;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench;

/// <summary>
/// Describes and verifies the processes of library rows. This program has the libraries woven, and the folder
/// <see cref="Originals"/> beside it has them as they are published.
/// </summary>
/// <remarks>
/// One process cannot use both. In the mode <see cref="ModeTable.Unwoven"/>, the dependencies of the process name the files
/// of that folder instead. Everything else is the same file in each mode, and the host loads it in the same way.
/// </remarks>
internal static class LibraryProcess
{
    public const string Originals = "unwoven";

    /// <summary>The AppContext value that makes woven streams expect no padding (docs/libraries.md).</summary>
    public const string NoPaddingNames = "KernelTls.Weaving.ExpectNoPadding";

    private const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    private const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";

    /// <summary>The reference to a module that marks a woven assembly (docs/libraries.md).</summary>
    private const string WovenMark = "KernelTls.Weave";

    private static readonly Lazy<string> s_originalDependencies = new(WriteOriginalDependencies);

    /// <summary>Sets the switches of a process as an operator does: kernel TLS is on, or nothing is set.</summary>
    public static void SetSwitches(ProcessStartInfo start, string mode)
    {
        start.Environment.Remove(KernelVariable);
        start.Environment.Remove(DirectVariable);
        if (IsKernel(mode))
        {
            start.Environment[KernelVariable] = "1";
        }
    }

    /// <summary>
    /// Gets the path of a copy of this program's dependencies that names the original libraries. It is deleted when this
    /// process ends.
    /// </summary>
    public static string OriginalDependencies => s_originalDependencies.Value;

    /// <summary>Returns whether kernel TLS is on in a mode of library rows.</summary>
    public static bool IsKernel(string mode) => mode is ModeTable.Kernel or ModeTable.KernelWithoutPadding;

    /// <summary>Verifies that this process has the library of the mode and its switch.</summary>
    /// <exception cref="BenchFailedException">The process was started for another mode.</exception>
    public static void Verify(string mode, Assembly library)
    {
        bool isWoven = IsWoven(library.Location);
        bool isOn = Environment.GetEnvironmentVariable(KernelVariable) == "1";
        bool expectsNoPadding = AppContext.GetData(NoPaddingNames) is not null;
        if (isWoven != (mode != ModeTable.Unwoven) || isOn != IsKernel(mode) || expectsNoPadding != (mode == ModeTable.KernelWithoutPadding))
        {
            throw new BenchFailedException(
                $"{mode}: this process was not started as the table's are: {library.Location} is {(isWoven ? "" : "not ")}woven, "
                + $"kernel TLS is {(isOn ? "on" : "off")}, and padding is {(expectsNoPadding ? "not " : "")}expected");
        }
    }

    /// <summary>Returns whether an assembly carries the mark of the weaver.</summary>
    public static bool IsWoven(string path)
    {
        using PEReader reader = new(File.OpenRead(path));
        MetadataReader metadata = reader.GetMetadataReader();
        return Enumerable.Range(1, metadata.GetTableRowCount(TableIndex.ModuleRef)).Any(row =>
            metadata.StringComparer.Equals(
                metadata.GetModuleReference(MetadataTokens.ModuleReferenceHandle(row)).Name, WovenMark));
    }

    /// <remarks>
    /// The host looks for files in the folder of the copy. That is not the program's, which may be read-only. Therefore the copy
    /// names the place of each file.
    /// </remarks>
    private static string WriteOriginalDependencies()
    {
        string program = typeof(LibraryProcess).Assembly.Location;
        string folder = Path.GetDirectoryName(program)!;
        string temporary = Path.GetTempPath();
        JsonNode dependencies = JsonNode.Parse(File.ReadAllText(Path.ChangeExtension(program, "deps.json")))!;
        var files =
            from target in dependencies["targets"]!.AsObject()
            from package in target.Value!.AsObject()
            from file in package.Value!["runtime"]?.AsObject() ?? []
            select (Name: Path.GetFileName(file.Key), Description: file.Value!);
        foreach ((string name, JsonNode description) in files)
        {
            string original = Path.Combine(folder, Originals, name);
            description["localPath"] = Path.GetRelativePath(temporary, File.Exists(original) ? original : Path.Combine(folder, name));
        }

        string written = Path.Combine(temporary, $"{Path.GetFileNameWithoutExtension(program)}.{Originals}.{Environment.ProcessId}.deps.json");
        File.WriteAllText(written, dependencies.ToJsonString());
        AppDomain.CurrentDomain.ProcessExit += (_, _) => File.Delete(written);
        return written;
    }
}
