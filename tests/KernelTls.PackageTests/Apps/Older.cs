// A program for an older .NET, which says what it has loaded.
using System.Net.Security;

try
{
    new SslStream(new MemoryStream()).AuthenticateAsClient("nobody");
}
catch (IOException)
{
    string[] loaded = [.. AppDomain.CurrentDomain.GetAssemblies().Select(a => a.GetName().Name!).Where(n => n.StartsWith("KernelTls"))];
    Console.WriteLine($".NET {Environment.Version.Major} loaded: {string.Join(' ', loaded)}");
}
