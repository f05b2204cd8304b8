using System.Net.Security;
using System.Net.WebSockets;
using System.Reflection;

namespace KernelTls.Weave.Tests;

/// <summary>
/// Tests the members that a woven library can call on the replaced types of the running runtime. Each member is overridden by this
/// library, has a replacement, or needs none for the reason listed here.
/// </summary>
public class SurfaceTests
{
    private const BindingFlags Visible = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance | BindingFlags.DeclaredOnly;

    /// <summary>The members of SslStream that need no replacement: they return values that the handshake publishes, or call other members.</summary>
    private static readonly string[] s_same =
    [
        "get_TargetHostName()", "get_NegotiatedApplicationProtocol()", "Write(Byte[])",
    ];

    [Fact]
    public void Every_member_of_SslStream_that_cannot_be_overridden_has_a_replacement_or_needs_none()
    {
        TypeReplacement replacement = Compiled.Replacements.Find(typeof(SslStream).FullName!)!;
        string[] fixedMembers = [.. typeof(SslStream).GetMethods(Visible)
            .Where(m => (m.IsPublic || m.IsFamily || m.IsFamilyOrAssembly) && (!m.IsVirtual || m.IsFinal)).Select(Text)];

        Assert.NotEmpty(fixedMembers);
        Assert.Equal(fixedMembers.Except(s_same).Order(), replacement.Members.Order());
        Assert.Empty(s_same.Except(fixedMembers));
    }

    [Fact]
    public void Every_member_of_KtlsStream_that_hides_one_of_SslStream_has_a_replacement()
    {
        TypeReplacement replacement = Compiled.Replacements.Find(typeof(SslStream).FullName!)!;
        HashSet<string> stock = [.. typeof(SslStream).GetMethods(Visible).Where(m => !m.IsVirtual || m.IsFinal).Select(Text)];

        string[] hiding = [.. typeof(KtlsStream).GetMethods(Visible).Where(m => m.IsPublic || m.IsFamily).Select(Text).Where(stock.Contains)];

        Assert.NotEmpty(hiding);
        Assert.Empty(hiding.Except(replacement.Members));
    }

    [Theory]
    [InlineData(typeof(SslStream), "WovenSslStream`1")]
    [InlineData(typeof(HttpClientHandler), "WovenHttpClientHandler`1")]
    [InlineData(typeof(HttpClient), "WovenHttpClient`1")]
    public void Every_constructor_of_a_replaced_base_class_is_there(Type type, string baseClass)
    {
        Assert.Equal(baseClass, Compiled.Replacements.Find(type.FullName!)!.BaseClass);
        Type woven = typeof(KtlsStream).Assembly.GetType("KernelTls.Weaving." + baseClass, throwOnError: true)!;

        Assert.Equal(Constructors(type), Constructors(woven));
    }

    [Fact]
    public void Every_constructor_of_SslStream_and_those_of_HttpClient_that_make_a_handler_have_a_replacement()
    {
        Assert.Equal(
            Constructors(typeof(SslStream)), Compiled.Replacements.Find(typeof(SslStream).FullName!)!.Constructors.Keys.Order());
        Assert.Equal(["()"], Compiled.Replacements.Find(typeof(HttpClient).FullName!)!.Constructors.Keys);
        Assert.Equal(
            Constructors(typeof(HttpClientHandler)), Compiled.Replacements.Find(typeof(HttpClientHandler).FullName!)!.Constructors.Keys.Order());
        Assert.Equal(
            Constructors(typeof(SocketsHttpHandler)), Compiled.Replacements.Find(typeof(SocketsHttpHandler).FullName!)!.Constructors.Keys.Order());
    }

    /// <summary>With an invoker the connection is that of its handler.</summary>
    [Fact]
    public void The_method_by_which_ClientWebSocket_connects_without_an_invoker_has_a_replacement() => Assert.Equal(
        typeof(ClientWebSocket).GetMethods(Visible)
            .Where(m => m.IsPublic && m.Name.StartsWith("Connect", StringComparison.Ordinal))
            .Where(m => m.GetParameters().All(p => p.ParameterType != typeof(HttpMessageInvoker)))
            .Select(Text).Order(),
        Compiled.Replacements.Find(typeof(ClientWebSocket).FullName!)!.Members.Order());

    /// <summary>No other type of the runtime creates connections.</summary>
    [Fact]
    public void These_types_have_replacements() => Assert.Equal(
        [
            "System.Net.Http.HttpClient", "System.Net.Http.HttpClientHandler", "System.Net.Http.SocketsHttpHandler", "System.Net.Security.SslStream",
            "System.Net.WebSockets.ClientWebSocket",
        ],
        Compiled.Replacements.Types.Order(StringComparer.Ordinal));

    private static string[] Constructors(Type type) => [.. type.GetConstructors(Visible)
        .Where(c => c.IsPublic || c.IsFamily).Select(c => SignatureText.Of(c.GetParameters().Select(p => Name(p.ParameterType)))).Order()];

    private static string Text(MethodInfo method) =>
        method.Name + SignatureText.Of(method.GetParameters().Select(p => Name(p.ParameterType)));

    /// <summary>Returns the weaver's notation of a type.</summary>
    private static string Name(Type type) => type.IsPrimitive || type == typeof(string) || type == typeof(object)
        ? type.Name
        : type.IsArray ? Name(type.GetElementType()!) + "[]"
        : type.FullName!;
}
