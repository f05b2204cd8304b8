namespace KernelTls.Tool;

/// <summary>Contains the tool's exit codes. <c>ktls --help</c> prints the same list.</summary>
internal static class ExitCode
{
    /// <summary>The command succeeded. For info and probe, the answer is yes.</summary>
    public const int Ok = 0;

    /// <summary>
    /// The answer is no: kernel TLS is not available here (info), not in both directions with this peer (probe), or not for this connection,
    /// which requires it (connect). The folder cannot be woven or restored, or has nothing to weave (weave).
    /// </summary>
    public const int No = 1;

    public const int WrongUsage = 2;

    /// <summary>The TCP connection to the peer failed.</summary>
    public const int Unreachable = 3;

    /// <summary>The peer does not use TLS, or the handshake failed.</summary>
    public const int NoHandshake = 4;

    public const int NotTrusted = 5;

    /// <summary>Another prerequisite is missing or failed.</summary>
    public const int Failed = 6;

    /// <summary>The peer refused this client: it requires a certificate, does not accept the one it got, or sent another alert after the handshake.</summary>
    public const int Refused = 7;

    /// <summary>The command of <c>ktls run</c> cannot be started.</summary>
    public const int CommandNotStarted = 126;

    /// <summary>The command of <c>ktls run</c> is not there.</summary>
    public const int CommandNotFound = 127;

    /// <summary>
    /// SIGINT or SIGTERM interrupted the command. The commands that only such a signal ends, serve and top, return
    /// <see cref="Ok"/>.
    /// </summary>
    public const int Interrupted = 130;

    public const string Explanation = """
        Exit codes:
          0    done; info: kernel TLS is available; probe: in both directions with this peer
          1    info: no kernel TLS here; probe: not in both directions; connect --mode required: not in the kernel;
               weave: the folder stays as it is, for the reason in the message
          2    wrong usage
          3    the peer cannot be reached
          4    the peer does not use TLS, or the handshake failed
          5    the peer's certificate is not trusted
          6    something else that was needed is missing or broke
          7    the peer refused this client: its certificate, that it has none, or by an alert after the handshake
          126  run: the command cannot be started
          127  run: the command is not there; otherwise the exit code of run is the command's
          130  interrupted (serve and top: 0, because only a signal ends them)
        """;
}
