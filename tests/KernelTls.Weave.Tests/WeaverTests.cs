using System.Net.Security;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the replaced places, by running the woven code and by the list that the build prints.</summary>
public class WeaverTests
{
    [Theory]
    [InlineData("inner")]
    [InlineData("inner, false")]
    [InlineData("inner, false, null")]
    [InlineData("inner, false, null, null")]
    [InlineData("inner, false, null, null, EncryptionPolicy.RequireEncryption")]
    public void Every_constructor_is_replaced_and_without_the_toggle_makes_the_stock_stream(string arguments)
    {
        Compiled sample = Compiled.From($$"""
            public static class Sample
            {
                public static object Run(Stream inner) => new SslStream({{arguments}});
            }
            """);

        Assert.Equal(["Sample.Run+0x" + Offset(arguments) + ": new SslStream"], sample.Weave().Places);
        Assert.IsType<SslStream>(Compiled.Run(sample.Load(), new MemoryStream()), exactMatch: true);

        static string Offset(string arguments) => arguments.Count(c => c == ',') switch { 0 => "1", 1 => "2", 2 => "3", 3 => "4", _ => "5" };
    }

    [Fact]
    public void Calls_of_hidden_members_reach_those_of_the_library()
    {
        Compiled sample = Compiled.From("""
            public static class Sample
            {
                public static string Run(SslStream s)
                {
                    string said = s.TransportContext.GetType().Name;
                    try { s.AuthenticateAsClient(new SslClientAuthenticationOptions()); } catch (Exception e) { said += " " + e.Message; }
                    try { s.AuthenticateAsServer(new SslServerAuthenticationOptions()); } catch (Exception e) { said += " " + e.Message; }
                    try { s.AuthenticateAsClientAsync(new SslClientAuthenticationOptions()).Wait(); } catch (Exception e) { said += " " + (e.InnerException ?? e).Message; }
                    try { s.AuthenticateAsServerAsync(new SslServerAuthenticationOptions()).Wait(); } catch (Exception e) { said += " " + (e.InnerException ?? e).Message; }
                    try { s.AuthenticateAsServerAsync((_, _, _, _) => default, null).Wait(); } catch (Exception e) { said += " " + (e.InnerException ?? e).Message; }
                    return said;
                }
            }
            """);
        KtlsStream stream = Required(out string refusal);

        Assert.Equal(6, sample.Weave().Places.Count);
        Assert.Equal(
            $"TlsTransportContext {refusal} {refusal} {refusal} {refusal} {refusal}", Compiled.Run(sample.Load(), stream));
        Assert.StartsWith("SslStreamContext", (string)Compiled.Run(sample.Load(), new SslStream(new MemoryStream()))!, StringComparison.Ordinal);
    }

    [Fact]
    public void Delegates_of_hidden_members_reach_those_of_the_library()
    {
        Compiled sample = Compiled.From("""
            public static class Sample
            {
                public static Task Run(SslStream s)
                {
                    Func<SslClientAuthenticationOptions, CancellationToken, Task> shake = s.AuthenticateAsClientAsync;
                    return shake(new SslClientAuthenticationOptions(), default);
                }
            }
            """);
        KtlsStream stream = Required(out string refusal);

        Task task = (Task)Compiled.Run(sample.Load(), stream)!;

        Assert.Equal(refusal, Assert.IsType<KtlsNotAvailableException>(task.Exception!.InnerException).Message);
    }

    [Fact]
    public void A_subclass_gets_the_librarys_stream_as_its_base_and_calls_its_members_where_it_called_its_bases()
    {
        Compiled sample = Compiled.From("""
            public class Sample(Stream inner) : SslStream(inner, true)
            {
                public override bool CanRead => base.CanRead;
                public override int Read(Span<byte> buffer) => base.Read(buffer);
                public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken token) => base.ReadAsync(buffer, token);
                public string Name => TargetHostName + NegotiatedApplicationProtocol;
                public static Stream Run(Stream inner) => new Other(inner);
                private class Other(Stream inner) : Sample(inner)
                {
                    public override void Write(ReadOnlySpan<byte> buffer) => base.Write(buffer);
                }
            }
            """);

        WeaveResult result = sample.Weave();
        object stream = Compiled.Run(sample.Load(), new MemoryStream())!;

        Assert.Equal(["class Sample : SslStream"], result.Places);
        KtlsStream own = Assert.IsType<KtlsStream>(stream, exactMatch: false);
        Assert.Equal("WovenSslStream`1", own.GetType().BaseType!.BaseType!.Name);
        Assert.False(own.CanRead);
        Assert.Equal(
            "This operation is only allowed using a successfully authenticated context.",
            Assert.Throws<InvalidOperationException>(() => own.Read(new byte[1].AsSpan())).Message);
        Assert.Empty(Uses.OfMembers(result.Image!, "System.Net.Security.SslStream", "Read", "ReadAsync", "get_CanRead", ".ctor"));
    }

    [Fact]
    public void Generic_code_is_woven_as_any_other()
    {
        Compiled sample = Compiled.From("""
            public class Box<T>
            {
                public (T, SslStream) Make<U>(Stream inner) => (default, new SslStream(inner));
            }
            public class Keep<T> where T : SslStream
            {
                public Task Shake(T s) => s.AuthenticateAsClientAsync(new SslClientAuthenticationOptions());
            }
            public class Mine<T>(Stream inner) : SslStream(inner) { }
            public static class Sample
            {
                public static object Run(SslStream s) =>
                    (new Box<int>().Make<string>(new MemoryStream()).Item2, new Mine<string>(new MemoryStream()), new Keep<SslStream>().Shake(s));
            }
            """);
        KtlsStream stream = Required(out string refusal);

        (SslStream made, SslStream mine, Task shaken) = ((SslStream, SslStream, Task))Retype(Compiled.Run(sample.Load(), stream)!);

        Assert.IsType<SslStream>(made, exactMatch: true);
        Assert.IsType<KtlsStream>(mine, exactMatch: false);
        Assert.Equal(refusal, shaken.Exception!.InnerException!.Message);

        static object Retype(object tuple) => ((SslStream)Item(tuple, 1), (SslStream)Item(tuple, 2), (Task)Item(tuple, 3));
        static object Item(object tuple, int number) => tuple.GetType().GetField($"Item{number}")!.GetValue(tuple)!;
    }

    [Fact]
    public void Types_casts_and_what_is_not_hidden_stay()
    {
        Compiled sample = Compiled.From("""
            public static class Sample
            {
                public static object Run(object o) => o is SslStream s && s.GetType() == typeof(SslStream) ? ((SslStream)o).SslProtocol : typeof(SslStream);
            }
            """);

        WeaveResult result = sample.Weave();

        Assert.Null(result.Image);
        Assert.Empty(result.Places);
        Assert.Empty(result.Problems);
    }

    [Fact]
    public void What_makes_HttpClients_is_replaced_and_without_the_toggle_makes_stock_ones()
    {
        Compiled sample = Compiled.From("""
            public class MyHandler : HttpClientHandler { }
            public class MyClient : HttpClient { }
            public class OtherClient(HttpMessageHandler handler) : HttpClient(handler, true) { }
            public static class Sample
            {
                public static object[] Run()
                {
                    SocketsHttpHandler sockets = new() { PooledConnectionLifetime = TimeSpan.FromMinutes(1) };
                    sockets.ConnectCallback = null;
                    return [new HttpClient(), new HttpClientHandler { UseProxy = false }, sockets, sockets.ConnectCallback, new MyHandler(), new MyClient(), new OtherClient(sockets)];
                }
            }
            """);

        WeaveResult result = sample.Weave();
        object?[] made = (object?[])Compiled.Run(sample.Load())!;

        Assert.Equal(8, result.Places.Count);
        Assert.IsType<HttpClient>(made[0], exactMatch: true);
        Assert.False(Assert.IsType<HttpClientHandler>(made[1], exactMatch: true).UseProxy);
        Assert.Null(Assert.IsType<SocketsHttpHandler>(made[2], exactMatch: true).ConnectCallback);
        Assert.Null(made[3]);
        Assert.Equal("WovenHttpClientHandler`1", made[4]!.GetType().BaseType!.Name);
        Assert.Equal("WovenHttpClient`1", made[5]!.GetType().BaseType!.Name);
        Assert.Equal("WovenHttpClient`1", made[6]!.GetType().BaseType!.Name);
    }

    [Fact]
    public void An_expression_tree_is_a_problem_with_its_place()
    {
        Compiled sample = Compiled.From("""
            public static class Sample
            {
                public static object Run() =>
                    (System.Linq.Expressions.Expression<Action<SslStream>>)(s => s.AuthenticateAsClient(new SslClientAuthenticationOptions()));
            }
            """);

        Assert.Matches(
            @"^Sample\.Run\+0x[0-9a-f]+: SslStream\.AuthenticateAsClient is used by reflection or in an expression tree$",
            Assert.Single(sample.Weave().Problems));
    }

    [Fact]
    public void A_woven_assembly_is_not_woven_again()
    {
        byte[] woven = Compiled.From("public static class Sample { public static object Run(Stream s) => new SslStream(s); }").Weave().Image!;

        WeaveResult again = AssemblyWeaver.Weave(woven, Compiled.Replacements);

        Assert.Null(again.Image);
        Assert.True(again.WasWoven);
    }

    [Theory]
    [InlineData("typeof(KernelTls.Weaving.WovenMembers)")]
    [InlineData("new KernelTls.Weaving.WovenHttpClient<Mine>()")]
    [InlineData("KernelTls.Weaving.WovenConstructors<Mine>.NewSslStream(inner)")]
    public void An_assembly_that_uses_types_of_the_library_by_hand_is_woven_all_the_same_and_once(string use)
    {
        Compiled sample = Compiled.From($$"""
            public class Mine { }
            public static class Sample
            {
                public static object Other(Stream inner) => {{use}};
                public static object Run(Stream inner) => new SslStream(inner);
            }
            """);

        WeaveResult result = sample.Weave();

        Assert.Equal(["Sample.Run+0x1: new SslStream"], result.Places);
        Assert.False(result.WasWoven);
        Assert.IsType<SslStream>(Compiled.Run(sample.Load(), new MemoryStream()), exactMatch: true);
        Assert.True(AssemblyWeaver.Weave(result.Image!, Compiled.Replacements).WasWoven);
    }

    [Fact]
    public void The_same_assembly_gives_the_same_bytes_and_another_one_another_identity()
    {
        Compiled sample = Compiled.From("public static class Sample { public static object Run(Stream s) => new SslStream(s); }");

        byte[] woven = sample.Weave().Image!;

        Assert.Equal(woven, sample.Weave().Image);
        Assert.NotEqual(Compiled.Load(sample.Image).ManifestModule.ModuleVersionId, Compiled.Load(woven).ManifestModule.ModuleVersionId);
    }

    /// <summary>Represents a stream whose handshakes throw, which shows that they are the library's.</summary>
    private static KtlsStream Required(out string refusal)
    {
        KtlsStream stream = new(new MemoryStream(), false, new KtlsOptions { Mode = KtlsMode.Required });
        refusal = Assert.Throws<KtlsNotAvailableException>(() => stream.AuthenticateAsClient(new SslClientAuthenticationOptions())).Message;
        return stream;
    }
}
