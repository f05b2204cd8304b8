namespace KernelTls.Tool.Weaving;

/// <summary>What the user wants to be woven.</summary>
/// <param name="Names">The names of assemblies, or none for those of the application.</param>
/// <param name="All">Whether assemblies are woven that the application does not list, such as plug-ins.</param>
/// <param name="Strip">Whether native code may be removed.</param>
internal sealed record WeaveRequest(IReadOnlyList<string> Names, bool All, bool Strip);
