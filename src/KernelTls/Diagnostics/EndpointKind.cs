namespace KernelTls.Diagnostics;

/// <summary>Describes an https endpoint of Kestrel.</summary>
/// <param name="Endpoint">The endpoint as Kestrel shows it.</param>
/// <param name="State">What its connections use.</param>
/// <param name="Remedy">How to change that; empty if there is nothing to change.</param>
internal sealed record EndpointKind(string Endpoint, string State, string Remedy) : IProcessKind
{
    /// <inheritdoc/>
    public StatusEntry Describe() => new("endpoint", Endpoint, State, Remedy);
}
