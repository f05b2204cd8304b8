using System.Reflection.Metadata.Ecma335;

namespace KernelTls.Weave.Images;

/// <summary>The columns of the metadata tables (ECMA-335, II.22) and the tables that a coded index can lead to (II.24.2.6).</summary>
internal static class MetadataSchema
{
    private const int Strings = MetadataColumn.Strings, Guids = MetadataColumn.Guids, Blobs = MetadataColumn.Blobs;

    private static readonly CodedIndexKind s_typeDefOrRef = new(2, [TableIndex.TypeDef, TableIndex.TypeRef, TableIndex.TypeSpec]);
    private static readonly CodedIndexKind s_hasConstant = new(2, [TableIndex.Field, TableIndex.Param, TableIndex.Property]);
    private static readonly CodedIndexKind s_hasFieldMarshal = new(1, [TableIndex.Field, TableIndex.Param]);
    private static readonly CodedIndexKind s_hasDeclSecurity = new(2, [TableIndex.TypeDef, TableIndex.MethodDef, TableIndex.Assembly]);
    private static readonly CodedIndexKind s_memberRefParent =
        new(3, [TableIndex.TypeDef, TableIndex.TypeRef, TableIndex.ModuleRef, TableIndex.MethodDef, TableIndex.TypeSpec]);

    private static readonly CodedIndexKind s_hasSemantics = new(1, [TableIndex.Event, TableIndex.Property]);
    private static readonly CodedIndexKind s_methodDefOrRef = new(1, [TableIndex.MethodDef, TableIndex.MemberRef]);
    private static readonly CodedIndexKind s_memberForwarded = new(1, [TableIndex.Field, TableIndex.MethodDef]);
    private static readonly CodedIndexKind s_implementation = new(2, [TableIndex.File, TableIndex.AssemblyRef, TableIndex.ExportedType]);
    private static readonly CodedIndexKind s_attributeType = new(3, [TableIndex.MethodDef, TableIndex.MemberRef]);
    private static readonly CodedIndexKind s_typeOrMethodDef = new(1, [TableIndex.TypeDef, TableIndex.MethodDef]);
    private static readonly CodedIndexKind s_resolutionScope =
        new(2, [TableIndex.Module, TableIndex.ModuleRef, TableIndex.AssemblyRef, TableIndex.TypeRef]);

    private static readonly CodedIndexKind s_hasCustomAttribute = new(
        5,
        [
            TableIndex.MethodDef, TableIndex.Field, TableIndex.TypeRef, TableIndex.TypeDef, TableIndex.Param, TableIndex.InterfaceImpl,
            TableIndex.MemberRef, TableIndex.Module, TableIndex.DeclSecurity, TableIndex.Property, TableIndex.Event,
            TableIndex.StandAloneSig, TableIndex.ModuleRef, TableIndex.TypeSpec, TableIndex.Assembly, TableIndex.AssemblyRef,
            TableIndex.File, TableIndex.ExportedType, TableIndex.ManifestResource, TableIndex.GenericParam,
            TableIndex.GenericParamConstraint, TableIndex.MethodSpec,
        ]);

    /// <summary>The number of tables of an assembly; those of a symbol file have higher numbers.</summary>
    public const int TableCount = (int)TableIndex.GenericParamConstraint + 1;

    private static readonly MetadataColumn[][] s_columns =
    [
        /* Module */ [2, Strings, Guids, Guids, Guids],
        /* TypeRef */ [s_resolutionScope, Strings, Strings],
        /* TypeDef */ [4, Strings, Strings, s_typeDefOrRef, TableIndex.Field, TableIndex.MethodDef],
        /* FieldPtr */ [TableIndex.Field],
        /* Field */ [2, Strings, Blobs],
        /* MethodPtr */ [TableIndex.MethodDef],
        /* MethodDef */ [4, 2, 2, Strings, Blobs, TableIndex.Param],
        /* ParamPtr */ [TableIndex.Param],
        /* Param */ [2, 2, Strings],
        /* InterfaceImpl */ [TableIndex.TypeDef, s_typeDefOrRef],
        /* MemberRef */ [s_memberRefParent, Strings, Blobs],
        /* Constant */ [2, s_hasConstant, Blobs],
        /* CustomAttribute */ [s_hasCustomAttribute, s_attributeType, Blobs],
        /* FieldMarshal */ [s_hasFieldMarshal, Blobs],
        /* DeclSecurity */ [2, s_hasDeclSecurity, Blobs],
        /* ClassLayout */ [2, 4, TableIndex.TypeDef],
        /* FieldLayout */ [4, TableIndex.Field],
        /* StandAloneSig */ [Blobs],
        /* EventMap */ [TableIndex.TypeDef, TableIndex.Event],
        /* EventPtr */ [TableIndex.Event],
        /* Event */ [2, Strings, s_typeDefOrRef],
        /* PropertyMap */ [TableIndex.TypeDef, TableIndex.Property],
        /* PropertyPtr */ [TableIndex.Property],
        /* Property */ [2, Strings, Blobs],
        /* MethodSemantics */ [2, TableIndex.MethodDef, s_hasSemantics],
        /* MethodImpl */ [TableIndex.TypeDef, s_methodDefOrRef, s_methodDefOrRef],
        /* ModuleRef */ [Strings],
        /* TypeSpec */ [Blobs],
        /* ImplMap */ [2, s_memberForwarded, Strings, TableIndex.ModuleRef],
        /* FieldRva */ [4, TableIndex.Field],
        /* EncLog */ [4, 4],
        /* EncMap */ [4],
        /* Assembly */ [4, 2, 2, 2, 2, 4, Blobs, Strings, Strings],
        /* AssemblyProcessor */ [4],
        /* AssemblyOS */ [4, 4, 4],
        /* AssemblyRef */ [2, 2, 2, 2, 4, Blobs, Strings, Strings, Blobs],
        /* AssemblyRefProcessor */ [4, TableIndex.AssemblyRef],
        /* AssemblyRefOS */ [4, 4, 4, TableIndex.AssemblyRef],
        /* File */ [4, Strings, Blobs],
        /* ExportedType */ [4, 4, Strings, Strings, s_implementation],
        /* ManifestResource */ [4, 4, Strings, s_implementation],
        /* NestedClass */ [TableIndex.TypeDef, TableIndex.TypeDef],
        /* GenericParam */ [2, 2, s_typeOrMethodDef, Strings],
        /* MethodSpec */ [s_methodDefOrRef, Blobs],
        /* GenericParamConstraint */ [TableIndex.GenericParam, s_typeDefOrRef],
    ];

    /// <summary>Returns the columns of a table.</summary>
    public static MetadataColumn[] ColumnsOf(int table) => s_columns[table];
}
