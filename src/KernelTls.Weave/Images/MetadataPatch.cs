using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Text;

namespace KernelTls.Weave.Images;

/// <summary>
/// Rows, strings and blobs to be appended to an assembly's metadata, and cells to be changed. Nothing that is there moves, so every
/// token and every heap offset of the assembly, of its method bodies and of its symbols stays what it is.
/// </summary>
/// <remarks>
/// Rows are appended to tables that need no order (ECMA-335, II.22), and inserted into the sorted table of attributes, whose rows nothing
/// refers to.
/// </remarks>
internal sealed class MetadataPatch
{
    private const uint Signature = 0x424A5342;

    private readonly byte[] _metadata;
    private readonly List<MetadataStream> _streams = [];
    private readonly int _headerEnd;
    private readonly MetadataSize _size;
    private readonly int _tablesStart;
    private readonly Dictionary<int, List<uint[]>> _newRows = [];
    private readonly List<uint[]> _newAttributes = [];
    private readonly Dictionary<(int Table, int Row, int Column), uint> _newCells = [];
    private readonly Dictionary<int, Guid> _newGuids = [];
    private readonly MetadataHeap _strings;
    private readonly MetadataHeap _blobs;

    /// <summary>Reads the structure of an assembly's metadata.</summary>
    /// <param name="metadata">The metadata, from its root on.</param>
    /// <exception cref="UnsupportedImageException">The metadata is of a kind that no compiler writes today.</exception>
    public MetadataPatch(byte[] metadata)
    {
        _metadata = metadata;
        ReadOnlySpan<byte> root = metadata;
        if (BinaryPrimitives.ReadUInt32LittleEndian(root) != Signature)
        {
            throw new UnsupportedImageException("its metadata has no signature");
        }

        int position = 16 + BinaryPrimitives.ReadInt32LittleEndian(root[12..]);
        _headerEnd = position + 4;
        int streams = BinaryPrimitives.ReadUInt16LittleEndian(root[(position + 2)..]);
        position = _headerEnd;
        for (int i = 0; i < streams; i++)
        {
            MetadataStream stream = MetadataStream.Read(root, ref position);
            _streams.Add(stream);
        }

        ReadOnlySpan<byte> tables = ContentOf("#~");
        byte heapSizes = tables[6];
        if ((heapSizes & ~7) != 0)
        {
            throw new UnsupportedImageException("its metadata tables are those of an edit-and-continue session");
        }

        ulong valid = BinaryPrimitives.ReadUInt64LittleEndian(tables[8..]);
        int[] rows = new int[64];
        position = 24;
        for (int table = 0; table < rows.Length; table++)
        {
            if ((valid >> table & 1) != 0)
            {
                rows[table] = BinaryPrimitives.ReadInt32LittleEndian(tables[position..]);
                position += 4;
            }
        }

        if (valid >> MetadataSchema.TableCount != 0)
        {
            throw new UnsupportedImageException("its metadata has tables that ECMA-335 does not know");
        }

        _size = new MetadataSize(rows, heapSizes);
        _tablesStart = position;
        _strings = new MetadataHeap(ContentOf("#Strings"));
        _blobs = new MetadataHeap(ContentOf("#Blob"));
    }

    /// <summary>Adds a name; returns its offset in the heap of strings.</summary>
    public uint AddString(string text) => _strings.Add([.. Encoding.UTF8.GetBytes(text), 0]);

    /// <summary>Adds a blob; returns its offset in the heap of blobs.</summary>
    public uint AddBlob(byte[] content)
    {
        BlobBuilder length = new();
        length.WriteCompressedInteger(content.Length);
        return _blobs.Add([.. length.ToArray(), .. content]);
    }

    /// <summary>Appends a row; returns its number, which begins at 1.</summary>
    public int AddRow(TableIndex table, params uint[] cells)
    {
        if (!_newRows.TryGetValue((int)table, out List<uint[]>? rows))
        {
            _newRows[(int)table] = rows = [];
        }

        rows.Add(cells);
        return _size.Rows[(int)table] + rows.Count;
    }

    /// <summary>Adds an attribute after those of the same parent.</summary>
    /// <param name="parent">The coded index of the attribute's parent.</param>
    /// <param name="constructor">The coded index of the attribute's constructor.</param>
    /// <param name="value">The offset of its arguments in the heap of blobs.</param>
    public void AddAttribute(uint parent, uint constructor, uint value) => _newAttributes.Add([parent, constructor, value]);

    /// <summary>Changes a cell of an existing row.</summary>
    public void SetCell(TableIndex table, int row, int column, uint value) => _newCells[((int)table, row, column)] = value;

    /// <summary>Changes an entry of the heap of GUIDs.</summary>
    /// <param name="number">Its number, which begins at 1.</param>
    /// <param name="value">The new value.</param>
    public void SetGuid(int number, Guid value) => _newGuids[number] = value;

    /// <summary>Returns the new metadata.</summary>
    public byte[] ToArray()
    {
        List<(MetadataStream Stream, byte[] Content)> streams = [];
        foreach (MetadataStream stream in _streams)
        {
            streams.Add((stream, stream.Name switch
            {
                "#~" => WriteTables(),
                "#Strings" => _strings.ToArray(),
                "#Blob" => _blobs.ToArray(),
                "#GUID" => WriteGuids(),
                _ => stream.ContentIn(_metadata).ToArray(),
            }));
        }

        BlobBuilder root = new();
        root.WriteBytes(_metadata, 0, _headerEnd);
        int offset = _headerEnd + streams.Sum(s => s.Stream.HeaderLength);
        foreach ((MetadataStream stream, byte[] content) in streams)
        {
            stream.WriteHeader(root, offset, content.Length);
            offset += content.Length;
        }

        foreach ((_, byte[] content) in streams)
        {
            root.WriteBytes(content);
        }

        return root.ToArray();
    }

    private ReadOnlySpan<byte> ContentOf(string name)
    {
        foreach (MetadataStream stream in _streams)
        {
            if (stream.Name == name)
            {
                return stream.ContentIn(_metadata);
            }
        }

        throw new UnsupportedImageException(
            name == "#~" ? "its metadata tables are not compressed" : $"its metadata has no stream {name}");
    }

    private byte[] WriteGuids()
    {
        const int Size = 16;
        byte[] guids = ContentOf("#GUID").ToArray();
        foreach ((int number, Guid value) in _newGuids)
        {
            value.TryWriteBytes(guids.AsSpan((number - 1) * Size));
        }

        return guids;
    }

    private byte[] WriteTables()
    {
        ReadOnlySpan<byte> old = ContentOf("#~");
        int[] rows = [.. _size.Rows];
        ulong valid = BinaryPrimitives.ReadUInt64LittleEndian(old[8..]);
        foreach ((int table, List<uint[]> added) in _newRows)
        {
            rows[table] += added.Count;
            valid |= 1UL << table;
        }

        if (_newAttributes.Count != 0)
        {
            rows[(int)TableIndex.CustomAttribute] += _newAttributes.Count;
            valid |= 1UL << (int)TableIndex.CustomAttribute;
        }

        MetadataSize size = new(rows, _size.HeapSizesFor(_strings.Length, _blobs.Length));
        BlobBuilder result = new();
        result.WriteBytes(old[..6].ToArray());
        result.WriteByte(size.HeapSizes);
        result.WriteByte(old[7]);
        result.WriteUInt64(valid);
        result.WriteBytes(old[16..24].ToArray());
        for (int table = 0; table < rows.Length; table++)
        {
            if ((valid >> table & 1) != 0)
            {
                result.WriteInt32(rows[table]);
            }
        }

        int position = _tablesStart;
        for (int table = 0; table < MetadataSchema.TableCount; table++)
        {
            WriteTable(result, old, ref position, table, size);
        }

        result.Align(4);
        return result.ToArray();
    }

    private void WriteTable(BlobBuilder result, ReadOnlySpan<byte> old, ref int position, int table, in MetadataSize size)
    {
        MetadataColumn[] columns = MetadataSchema.ColumnsOf(table);
        Span<int> oldWidths = stackalloc int[columns.Length];
        Span<int> newWidths = stackalloc int[columns.Length];
        for (int column = 0; column < columns.Length; column++)
        {
            oldWidths[column] = columns[column].WidthIn(_size);
            newWidths[column] = columns[column].WidthIn(size);
        }

        Queue<uint[]> attributes = table == (int)TableIndex.CustomAttribute ? new(_newAttributes.OrderBy(a => a[0])) : [];
        for (int row = 1; row <= _size.Rows[table]; row++)
        {
            uint parent = Read(old, oldWidths[0], position);
            while (attributes.TryPeek(out uint[]? attribute) && attribute[0] < parent)
            {
                WriteRow(result, newWidths, attributes.Dequeue());
            }

            for (int column = 0; column < columns.Length; column++)
            {
                uint value = Read(old, oldWidths[column], position);
                position += oldWidths[column];
                Write(result, newWidths[column], _newCells.GetValueOrDefault((table, row, column), value));
            }
        }

        foreach (uint[] added in attributes.Concat(_newRows.GetValueOrDefault(table, [])))
        {
            WriteRow(result, newWidths, added);
        }
    }

    private static uint Read(ReadOnlySpan<byte> tables, int width, int position) => width == 2
        ? BinaryPrimitives.ReadUInt16LittleEndian(tables[position..])
        : BinaryPrimitives.ReadUInt32LittleEndian(tables[position..]);

    private static void WriteRow(BlobBuilder result, ReadOnlySpan<int> widths, uint[] cells)
    {
        for (int column = 0; column < cells.Length; column++)
        {
            Write(result, widths[column], cells[column]);
        }
    }

    private static void Write(BlobBuilder result, int width, uint value)
    {
        if (width == 2)
        {
            result.WriteUInt16(checked((ushort)value));
        }
        else
        {
            result.WriteUInt32(value);
        }
    }
}
