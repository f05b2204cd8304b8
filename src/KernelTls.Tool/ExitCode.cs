namespace KernelTls.Tool;

/// <summary>What the tool's exit codes mean; <c>ktls --help</c> prints the same list.</summary>
internal static class ExitCode
{
    /// <summary>Done. For a question (info, probe): yes.</summary>
    public const int Ok = 0;

    /// <summary>The answer is no: no kernel TLS here (info), or not in both directions with this peer (probe).</summary>
    public const int No = 1;

    public const int WrongUsage = 2;

    /// <summary>No TCP connection to the peer.</summary>
    public const int Unreachable = 3;

    /// <summary>The peer does not speak TLS, or no handshake came about.</summary>
    public const int NoHandshake = 4;

    public const int NotTrusted = 5;

    /// <summary>Something else that was needed is not there, or broke on the way.</summary>
    public const int Failed = 6;

    /// <summary>Ended by SIGINT or SIGTERM before it was done. The commands that only such a signal ends, serve and top, end with <see cref="Ok"/>.</summary>
    public const int Interrupted = 130;

    public const string Explanation = """
        Exit codes:
          0    done; info: kernel TLS can be had; probe: in both directions with this peer
          1    info: no kernel TLS here; probe: not in both directions
          2    wrong usage
          3    the peer cannot be reached
          4    the peer does not speak TLS, or the handshake failed
          5    the peer's certificate is not trusted
          6    something else that was needed is missing or broke
          130  interrupted (serve and top: 0, nothing else ends them)
        """;
}
