// A web application that is built by another thread while this one, at its first use of TLS, is in a start-up hook, which loads its library. It is
// a start-up hook itself. If it is the first one, .NET asks it for that library before the hook behind it.
using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

UseTls();
StartupHook.Application.MapGet("/", () => "Hello World!");
StartupHook.Application.Run();

[MethodImpl(MethodImplOptions.NoInlining)]
static void UseTls() => new SslStream(new MemoryStream()).Dispose();

internal static class StartupHook
{
    private static int s_asked;

    public static WebApplication Application { get; private set; } = null!;

    public static void Initialize() => AssemblyLoadContext.Default.Resolving += (_, name) =>
    {
        if (name.Name == "KernelTls" && Interlocked.Exchange(ref s_asked, 1) == 0)
        {
            Thread other = new(() => Application = WebApplication.CreateBuilder(Environment.GetCommandLineArgs()[1..]).Build());
            other.Start();
            Console.WriteLine(other.Join(TimeSpan.FromSeconds(20)) ? "The other thread has built it." : "The other thread waits.");
        }

        return null;
    };
}
