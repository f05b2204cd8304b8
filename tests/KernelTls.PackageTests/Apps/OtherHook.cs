// Another start-up hook, as an agent of telemetry has.
internal static class StartupHook
{
    public static void Initialize() => Console.WriteLine("The other hook runs.");
}
