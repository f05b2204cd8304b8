#pragma warning disable CA1416 // The tool is for Linux.
using System.Net.Security;
using System.Reflection;
using System.Reflection.Emit;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
using System.Security.Cryptography;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>
/// A published folder whose application has libraries that each create an SslStream, and prints the types of these streams. It is made
/// without an SDK.
/// </summary>
internal sealed class SampleFolder : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public SampleFolder(int libraries = 2, string framework = "Microsoft.NETCore.App", string? version = null, string platform = "")
    {
        Directory.CreateDirectory(FullName);
        List<MethodInfo> makers = [];
        for (int i = 0; i < libraries; i++)
        {
            makers.Add(WriteLibrary($"Library{i}"));
        }

        WriteProgram(makers);
        Write("app.runtimeconfig.json", $$"""
            {
              "runtimeOptions": {
                "tfm": "net10.0",
                "framework": { "name": "{{framework}}", "version": "{{version ?? Environment.Version.ToString()}}" },
                "configProperties": { "System.Globalization.Invariant": true }
              }
            }
            """);
        string packages = string.Concat(Enumerable.Range(0, libraries).Select(
            i => $",\n      \"Library{i}/1.0.0\": {{ \"runtime\": {{ \"lib/net10.0/Library{i}.dll\": {{}} }} }}"));
        string names = string.Concat(Enumerable.Range(0, libraries).Select(i => $",\n    \"Library{i}/1.0.0\": {{ \"type\": \"package\", \"serviceable\": true, \"sha512\": \"\" }}"));
        Write("app.deps.json", $$"""
            {
              "runtimeTarget": { "name": ".NETCoreApp,Version=v10.0{{platform}}", "signature": "" },
              "compilationOptions": {},
              "targets": {
                {{(platform.Length == 0 ? "" : "\".NETCoreApp,Version=v10.0\": {},")}}
                ".NETCoreApp,Version=v10.0{{platform}}": {
                  "app/1.0.0": { "runtime": { "app.dll": {} } }{{packages}}
                }
              },
              "libraries": {
                "app/1.0.0": { "type": "project", "serviceable": false, "sha512": "" }{{names}}
              }
            }
            """);
        Write("wwwroot/index.html", "unchanged");
    }

    public string FullName => _directory["published"];

    public string Program => Path("app.dll");

    public string Path(string file) => System.IO.Path.Combine(FullName, file);

    /// <summary>Runs the tool on the folder.</summary>
    public Task<Ktls.Result> WeaveAsync(params string[] arguments) => Ktls.RunAsync(["weave", FullName, .. arguments]);

    /// <summary>Runs the application and returns what it prints.</summary>
    public async Task<string> RunAsync(params (string, string)[] environment)
    {
        using Application application = Application.Start(Environment.ProcessPath!, FullName, environment, "exec", Program);
        return await application.SucceedAsync();
    }

    /// <summary>Returns the hash of every file, its permissions, and the time of its last change.</summary>
    public SortedDictionary<string, string> Contents()
    {
        SortedDictionary<string, string> contents = new(StringComparer.Ordinal);
        foreach (string entry in Directory.EnumerateFileSystemEntries(FullName, "*", SearchOption.AllDirectories))
        {
            contents[System.IO.Path.GetRelativePath(FullName, entry)] = Directory.Exists(entry)
                ? "folder"
                : $"{Convert.ToHexString(SHA256.HashData(File.ReadAllBytes(entry)))} {File.GetUnixFileMode(entry)} {File.GetLastWriteTimeUtc(entry):O}";
        }

        return contents;
    }

    public void Write(string file, string content)
    {
        Directory.CreateDirectory(System.IO.Path.GetDirectoryName(Path(file))!);
        File.WriteAllText(Path(file), content);
    }

    public void Dispose() => _directory.Dispose();

    private MethodBuilder WriteLibrary(string name)
    {
        PersistedAssemblyBuilder assembly = new(new AssemblyName(name) { Version = new Version(1, 0, 0, 0) }, typeof(object).Assembly);
        TypeBuilder type = assembly.DefineDynamicModule(name).DefineType($"{name}.Maker", TypeAttributes.Public | TypeAttributes.Class);
        MethodBuilder method = type.DefineMethod("Make", MethodAttributes.Public | MethodAttributes.Static, typeof(Stream), []);
        ILGenerator code = method.GetILGenerator();
        code.Emit(OpCodes.Newobj, typeof(MemoryStream).GetConstructor([])!);
        code.Emit(OpCodes.Newobj, typeof(SslStream).GetConstructor([typeof(Stream)])!);
        code.Emit(OpCodes.Ret);
        type.CreateType();
        assembly.Save(Path($"{name}.dll"));
        return method;
    }

    private void WriteProgram(List<MethodInfo> makers)
    {
        PersistedAssemblyBuilder assembly = new(new AssemblyName("app") { Version = new Version(1, 0, 0, 0) }, typeof(object).Assembly);
        TypeBuilder type = assembly.DefineDynamicModule("app").DefineType("Program", TypeAttributes.Public | TypeAttributes.Class);
        MethodBuilder main = type.DefineMethod("Main", MethodAttributes.Public | MethodAttributes.Static, typeof(void), []);
        ILGenerator code = main.GetILGenerator();
        foreach (MethodInfo maker in makers)
        {
            code.Emit(OpCodes.Call, maker);
            code.Emit(OpCodes.Callvirt, typeof(object).GetMethod(nameof(GetType))!);
            code.Emit(OpCodes.Callvirt, typeof(MemberInfo).GetProperty(nameof(MemberInfo.Name))!.GetMethod!);
            code.Emit(OpCodes.Call, typeof(Console).GetMethod(nameof(Console.WriteLine), [typeof(string)])!);
        }

        code.Emit(OpCodes.Ret);
        type.CreateType();
        MetadataBuilder metadata = assembly.GenerateMetadata(out BlobBuilder il, out BlobBuilder data);
        BlobBuilder image = new();
        new ManagedPEBuilder(
            PEHeaderBuilder.CreateExecutableHeader(),
            new MetadataRootBuilder(metadata),
            il,
            data,
            entryPoint: MetadataTokens.MethodDefinitionHandle(main.MetadataToken & 0xFFFFFF)).Serialize(image);
        File.WriteAllBytes(Program, image.ToArray());
    }
}
