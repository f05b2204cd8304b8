using System.Reflection;
using System.Text;
using KernelTls.AspNetCore;

namespace KernelTls.UnitTests;

public class PublicApiTests
{
    [Theory]
    [InlineData(typeof(KtlsStream), "PublicApi.txt")]
    [InlineData(typeof(IKtlsFeature), "PublicApi.AspNetCore.txt")]
    public void The_public_API_is_the_one_that_was_agreed_upon(Type type, string file)
    {
        string actual = Render(type.Assembly);
        if (Environment.GetEnvironmentVariable("KERNELTLS_UPDATE_API") == "1")
        {
            string source = typeof(PublicApiTests).Assembly.GetCustomAttributes<AssemblyMetadataAttribute>()
                .Single(a => a.Key == "PublicApiSource").Value!;
            File.WriteAllText(Path.Combine(source, file), actual);
        }

        string agreed = File.ReadAllText(Path.Combine(AppContext.BaseDirectory, file));
        Assert.True(
            agreed == actual,
            $"The public API differs from tests/KernelTls.UnitTests/{file}. If that is meant, run these tests with "
            + "KERNELTLS_UPDATE_API=1, look at the difference, and commit it.\n" + Difference(agreed, actual));
    }

    private static string Difference(string agreed, string actual)
    {
        string[] before = agreed.Split('\n');
        string[] after = actual.Split('\n');
        return string.Join('\n', before.Except(after).Select(l => "- " + l).Concat(after.Except(before).Select(l => "+ " + l)));
    }

    private static string Render(Assembly assembly)
    {
        StringBuilder text = new();
        foreach (Type type in assembly.GetExportedTypes().OrderBy(t => t.FullName, StringComparer.Ordinal))
        {
            text.Append(Describe(type)).Append('\n');
            foreach (string member in Members(type).Distinct().Order(StringComparer.Ordinal))
            {
                text.Append("    ").Append(member).Append('\n');
            }
        }

        return text.ToString();
    }

    private static string Describe(Type type)
    {
        string kind = type.IsEnum ? "enum" : type.IsValueType ? "struct" : type.IsInterface ? "interface" : "class";
        string modifier = type.IsInterface ? "" : type.IsAbstract && type.IsSealed ? "static " : type.IsAbstract ? "abstract " : type.IsSealed && !type.IsValueType ? "sealed " : "";
        string bases = type.IsEnum || type.IsValueType || type.BaseType is null || type.BaseType == typeof(object) ? "" : $" : {Name(type.BaseType!)}";
        return $"{modifier}{kind} {type.FullName}{bases}";
    }

    private static IEnumerable<string> Members(Type type)
    {
        const BindingFlags Declared =
            BindingFlags.DeclaredOnly | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance | BindingFlags.Static;
        if (type.IsEnum)
        {
            return Enum.GetNames(type).Select(n => $"{n} = {Convert.ToInt64(Enum.Parse(type, n), null)}");
        }

        return type.GetMembers(Declared).Select(m => m switch
        {
            ConstructorInfo c when IsVisible(c) => $"{Access(c)}.ctor({Parameters(c)})",
            MethodInfo x when IsVisible(x) && !x.IsSpecialName => $"{Access(x)}{Name(x.ReturnType)} {x.Name}({Parameters(x)})",
            PropertyInfo p when p.GetAccessors(true).Any(IsVisible) => $"{Access(p.GetAccessors(true)[0])}{Name(p.PropertyType)} {p.Name} {{ {Accessors(p)}}}",
            FieldInfo f when f.IsPublic || f.IsFamily => $"{(f.IsStatic ? "static " : "")}{Name(f.FieldType)} {f.Name}",
            EventInfo e => $"event {Name(e.EventHandlerType!)} {e.Name}",
            _ => "",
        }).Where(l => l.Length > 0);
    }

    private static string Accessors(PropertyInfo property) =>
        (property.GetMethod is { } g && IsVisible(g) ? "get; " : "") + (property.SetMethod is { } s && IsVisible(s) ? IsInit(s) ? "init; " : "set; " : "");

    private static bool IsInit(MethodInfo setter) =>
        setter.ReturnParameter.GetRequiredCustomModifiers().Any(m => m.Name == "IsExternalInit");

    private static bool IsVisible(MethodBase method) => method.IsPublic || method.IsFamily || method.IsFamilyOrAssembly;

    private static string Access(MethodBase method) =>
        (method.IsPublic ? "" : "protected ")
        + (method.IsStatic ? "static " : method is MethodInfo { IsVirtual: true, IsFinal: false } m ? m.GetBaseDefinition() == m ? "virtual " : "override " : "");

    private static string Parameters(MethodBase method) => string.Join(", ", method.GetParameters().Select(p =>
        $"{(p.IsOut ? "out " : "")}{Name(p.ParameterType)} {p.Name}{(p.HasDefaultValue ? $" = {p.RawDefaultValue ?? "default"}" : "")}"));

    private static string Name(Type type)
    {
        if (type.IsByRef)
        {
            return Name(type.GetElementType()!) + "&";
        }

        return type.IsGenericType
            ? $"{type.Name.Split('`')[0]}<{string.Join(", ", type.GetGenericArguments().Select(Name))}>"
            : type.Name;
    }
}
