using System.Reflection.Metadata.Ecma335;

namespace KernelTls.Weave.Images;

/// <summary>
/// What a column of a metadata table holds: a number of two or four bytes, or an index whose width depends on the size of what it
/// leads to.
/// </summary>
internal readonly struct MetadataColumn
{
    public const int Strings = -1, Guids = -2, Blobs = -3;

    private readonly int _number;
    private readonly TableIndex? _table;
    private readonly CodedIndexKind? _coded;

    private MetadataColumn(int number, TableIndex? table, CodedIndexKind? coded) => (_number, _table, _coded) = (number, table, coded);

    public static implicit operator MetadataColumn(int widthOrHeap) => new(widthOrHeap, null, null);

    public static implicit operator MetadataColumn(TableIndex table) => new(0, table, null);

    public static implicit operator MetadataColumn(CodedIndexKind coded) => new(0, null, coded);

    /// <summary>Returns how many bytes the column has in metadata of this size (ECMA-335, II.24.2.6).</summary>
    public int WidthIn(in MetadataSize size)
    {
        if (_coded is { } coded)
        {
            int limit = 1 << (16 - coded.TagBits);
            foreach (TableIndex table in coded.Tables)
            {
                if (size.Rows[(int)table] >= limit)
                {
                    return 4;
                }
            }

            return 2;
        }

        if (_table is { } single)
        {
            return size.Rows[(int)single] < 0x10000 ? 2 : 4;
        }

        return _number switch
        {
            Strings => size.HasWideStrings ? 4 : 2,
            Guids => size.HasWideGuids ? 4 : 2,
            Blobs => size.HasWideBlobs ? 4 : 2,
            _ => _number,
        };
    }
}
