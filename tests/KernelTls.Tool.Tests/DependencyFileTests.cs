using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using KernelTls.Tests;
using KernelTls.Tool.Weaving;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that libraries are added to a deps.json as text, and everything else in it stays.</summary>
public class DependencyFileTests
{
    private const string Target = ".NETCoreApp,Version=v10.0";

    private static readonly string s_published = $$"""
        {
          "runtimeTarget": {
            "name": "{{Target}}",
            "signature": ""
          },
          "targets": {
            "{{Target}}": {
              "app/1.0.0": {
                "dependencies": {
                  "Npgsql": "10.0.3"
                },
                "runtime": {
                  "app.dll": {}
                }
              }
            }
          },
          "libraries": {
            "app/1.0.0": {
              "type": "project",
              "serviceable": false,
              "sha512": ""
            }
          }
        }
        """;

    private static readonly DependencyEntry[] s_added =
    [
        new("KernelTls", new Version(1, 2, 3, 0), [("runtimes/linux-x64/native/x.so", "linux-x64"), ("runtimes/linux-arm64/native/x.so", "linux-arm64")]),
        new("KernelTls.AspNetCore", new Version(1, 2, 3, 0), []),
    ];

    public static TheoryData<string> Forms =>
    [
        s_published,
        s_published.ReplaceLineEndings("\r\n"),
        "\uFEFF" + s_published,
        string.Concat(s_published.Split('\n').Select(l => l.Trim())),
        s_published.Replace("\"sha512\": \"\"", "\"sha512\": \"\" // as it is", StringComparison.Ordinal),
        """{"libraries":{},"targets":{"TARGET":{}},"runtimeTarget":{"name":"TARGET"}}""".Replace("TARGET", Target, StringComparison.Ordinal),
        """{ "targets": { "other": { "TARGET": { "libraries": {} } }, "TARGET": { "a/1": {} } , "last": {} }, "libraries": { "targets": {} }, "runtimeTarget": { "name": "TARGET" } }"""
            .Replace("TARGET", Target, StringComparison.Ordinal),
    ];

    [Theory]
    [MemberData(nameof(Forms))]
    public void What_was_there_stays_in_its_place(string text)
    {
        using TemporaryDirectory directory = new();
        byte[] before = Encoding.UTF8.GetBytes(text);
        File.WriteAllBytes(directory["app.deps.json"], before);

        byte[] after = DependencyFile.Read(directory["app.deps.json"]).With(s_added);

        Assert.Equal(before, WithoutAdded(after, before));
        File.WriteAllBytes(directory["app.deps.json"], after);
        DependencyFile changed = DependencyFile.Read(directory["app.deps.json"]);
        Assert.True(changed.Has("KernelTls"));
        Assert.True(changed.Has("KernelTls.AspNetCore"));
        Assert.Contains("KernelTls.dll", changed.Assemblies.Select(a => a.Path));
    }

    /// <summary>Compares with what the SDK writes for an application with the packages.</summary>
    [Fact]
    public void The_entries_have_the_members_of_the_SDK()
    {
        using TemporaryDirectory directory = new();
        File.WriteAllText(directory["app.deps.json"], s_published);

        string text = Encoding.UTF8.GetString(DependencyFile.Read(directory["app.deps.json"]).With([s_added[0], new("Own", new Version(1, 0, 0, 0), [("x.so", null)])]));

        JsonNode root = JsonNode.Parse(text)!;
        Assert.Equal(
            """{"runtime":{"KernelTls.dll":{"assemblyVersion":"1.2.3.0","fileVersion":"1.2.3.0"}},"runtimeTargets":{"runtimes/linux-x64/native/x.so":{"rid":"linux-x64","assetType":"native","fileVersion":"0.0.0.0"},"runtimes/linux-arm64/native/x.so":{"rid":"linux-arm64","assetType":"native","fileVersion":"0.0.0.0"}}}""",
            root["targets"]![Target]!["KernelTls/1.2.3"]!.ToJsonString());
        Assert.Equal(
            """{"runtime":{"Own.dll":{"assemblyVersion":"1.0.0.0","fileVersion":"1.0.0.0"}},"native":{"x.so":{"fileVersion":"0.0.0.0"}}}""",
            root["targets"]![Target]!["Own/1.0.0"]!.ToJsonString());
        Assert.Equal("""{"type":"package","serviceable":false,"sha512":""}""", root["libraries"]!["KernelTls/1.2.3"]!.ToJsonString());
        Assert.Equal(["app/1.0.0", "KernelTls/1.2.3", "Own/1.0.0"], root["libraries"]!.AsObject().Select(l => l.Key));
        Assert.Equal(["app/1.0.0", "KernelTls/1.2.3", "Own/1.0.0"], root["targets"]![Target]!.AsObject().Select(l => l.Key));

        // The layout is the SDK's as well: a formatter changes nothing.
        Assert.Equal(text, root.ToJsonString(new JsonSerializerOptions { WriteIndented = true }));
    }

    /// <summary>Removes the two pieces that were inserted, wherever they are.</summary>
    private static byte[] WithoutAdded(byte[] after, byte[] before)
    {
        int first = after.AsSpan().CommonPrefixLength(before);
        int last = 0;
        while (last < before.Length - first && after[^(last + 1)] == before[^(last + 1)])
        {
            last++;
        }

        // What lies between the pieces is in both.
        byte[] between = before[first..(before.Length - last)];
        int position = after.AsSpan(first, after.Length - first - last).IndexOf(between);
        Assert.True(position >= 0, Encoding.UTF8.GetString(after));
        return [.. after[..first], .. between, .. after[(after.Length - last)..]];
    }
}
