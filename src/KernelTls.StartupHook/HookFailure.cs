/// <summary>Reports that the hook has failed, and that the application uses the stock TLS.</summary>
internal static class HookFailure
{
    /// <summary>Writes an event, and a line to the standard error. Does not throw.</summary>
    public static void Report(Exception failure)
    {
        string message = Describe(failure);
        try
        {
            HookEventSource.Log.NotReached(message);
            Console.Error.WriteLine($"KernelTls: the start-up hook does not reach this application, which uses the stock TLS. {message}");
        }
        catch (Exception)
        {
            // There is no standard error, or no event source.
        }
    }

    /// <summary>Returns what failed, in one line.</summary>
    public static string Describe(Exception failure)
    {
        string message = failure.Message.ReplaceLineEndings(" ").Trim();
        return failure switch
        {
            HookException => message,
            { InnerException: HookException inner } => Describe(inner),
            _ => $"{failure.GetType().Name}: {message}",
        };
    }
}
