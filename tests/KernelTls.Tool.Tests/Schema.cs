using System.Text.Json;

namespace KernelTls.Tool.Tests;

/// <summary>Asserts the members of a JSON object, on which programs depend.</summary>
internal static class Schema
{
    public static void AssertMembers(JsonElement json, params string[] names) =>
        Assert.Equal(names.Order(StringComparer.Ordinal), json.EnumerateObject().Select(p => p.Name).Order(StringComparer.Ordinal));

    public static string Text(this JsonElement json, params string[] path)
    {
        foreach (string name in path)
        {
            json = json.GetProperty(name);
        }

        return json.ToString();
    }
}
