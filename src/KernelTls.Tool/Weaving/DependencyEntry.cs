using System.Text;

namespace KernelTls.Tool.Weaving;

/// <summary>A library in a deps.json, as the SDK writes it.</summary>
/// <param name="Name">The name of its assembly.</param>
/// <param name="Version">The version of the package.</param>
/// <param name="Shims">The paths of its native libraries in the folder, with their platforms; without one for the application's own.</param>
internal sealed record DependencyEntry(string Name, Version Version, IReadOnlyList<(string Path, string? Platform)> Shims)
{
    /// <summary>Gets the member of a target.</summary>
    public string Target
    {
        get
        {
            StringBuilder text = new($$"""
                      "{{Key}}": {
                        "runtime": {
                          "{{Name}}.dll": {
                            "assemblyVersion": "{{Version}}",
                            "fileVersion": "{{Version}}"
                          }
                        }
                """);
            foreach (IGrouping<bool, (string Path, string? Platform)> shims in Shims.GroupBy(s => s.Platform is null))
            {
                text.Append($",\n        \"{(shims.Key ? "native" : "runtimeTargets")}\": {{\n");
                text.AppendJoin(",\n", shims.Select(s => s.Platform is null
                    ? $$"""
                                "{{s.Path}}": {
                                  "fileVersion": "0.0.0.0"
                                }
                      """
                    : $$"""
                                "{{s.Path}}": {
                                  "rid": "{{s.Platform}}",
                                  "assetType": "native",
                                  "fileVersion": "0.0.0.0"
                                }
                      """));
                text.Append("\n        }");
            }

            return text.Append("\n      }").ToString();
        }
    }

    /// <summary>Gets the member of the libraries.</summary>
    public string Library => $$"""
            "{{Key}}": {
              "type": "package",
              "serviceable": false,
              "sha512": ""
            }
        """;

    private string Key => $"{Name}/{Version.ToString(3)}";
}
