using System.Reflection.Metadata.Ecma335;

namespace KernelTls.Weave.Images;

/// <summary>Represents a kind of index whose low bits select one of several tables.</summary>
/// <param name="TagBits">The number of these bits.</param>
/// <param name="Tables">The tables.</param>
internal sealed record CodedIndexKind(int TagBits, TableIndex[] Tables);
