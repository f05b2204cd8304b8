// A program without TLS, which waits. It knows nothing of kernel TLS.
string[] loaded = [.. AppDomain.CurrentDomain.GetAssemblies().Select(a => a.GetName().Name!).Where(n => n.StartsWith("KernelTls"))];
Console.WriteLine($"loaded: {string.Join(' ', loaded)}");
Thread.Sleep(Timeout.Infinite);
