/// <summary>Reports that the hook has failed, and that the application uses the stock TLS.</summary>
internal static class HookFailure
{
    /// <summary>Writes an event, and a line to the standard error. Does not throw.</summary>
    public static void Report(Exception failure)
    {
        string message = OneLine((failure as System.Reflection.TargetInvocationException)?.InnerException ?? failure);
        try
        {
            HookEventSource.Log.NotReached(message);
            Console.Error.WriteLine($"KernelTls: this process uses the stock TLS, because the start-up hook failed. {message}");
        }
        catch (Exception)
        {
            // There is no standard error, or no event source.
        }
    }

    private static string OneLine(Exception failure)
    {
        string message = failure.Message.ReplaceLineEndings(" ").Trim();
        return failure is InvalidOperationException ? message : $"{failure.GetType().Name}: {message}";
    }
}
