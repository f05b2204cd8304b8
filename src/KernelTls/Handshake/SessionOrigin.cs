namespace KernelTls.Handshake;

/// <summary>What a client's connection knew that its session does not say, for those who resume it.</summary>
/// <param name="ShowedCertificate">The client showed its own certificate in the full handshake.</param>
/// <param name="Verdict">What the server's chain was found to be; <see langword="null"/>: to be judged anew.</param>
internal readonly record struct SessionOrigin(bool ShowedCertificate, PeerVerdict? Verdict);
