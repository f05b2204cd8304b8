namespace KernelTls.Handshake;

/// <summary>
/// Contains the facts about a client's connection that its session does not contain and that a resumed connection
/// needs.
/// </summary>
/// <param name="SentCertificate">Whether the client sent its certificate in the full handshake.</param>
/// <param name="CachedResult">
/// The result of validating the server's chain, or <see langword="null"/> if it must be validated again.
/// </param>
internal readonly record struct SessionMetadata(bool SentCertificate, CachedValidationResult? CachedResult);
