using System.Collections.Immutable;
using System.Reflection.Metadata;
using System.Runtime.CompilerServices;

namespace KernelTls.Weave;

/// <summary>Writes signatures with full names, so that those of two assemblies can be compared. Assemblies are left out: types move.</summary>
internal sealed class SignatureText : ISignatureTypeProvider<string, object?>
{
    public static SignatureText Provider { get; } = new();

    /// <summary>Returns the parameters' types as text.</summary>
    public static string Of(IEnumerable<string> parameters) => "(" + string.Join(',', parameters) + ")";

    /// <summary>Returns the full name of a type that is not nested; the name alone of one that is.</summary>
    public static string NameOf(MetadataReader reader, StringHandle space, StringHandle name) =>
        space.IsNil ? reader.GetString(name) : reader.GetString(space) + "." + reader.GetString(name);

    public string GetPrimitiveType(PrimitiveTypeCode typeCode) => typeCode.ToString();

    public string GetTypeFromDefinition(MetadataReader reader, TypeDefinitionHandle handle, byte rawTypeKind)
    {
        RuntimeHelpers.EnsureSufficientExecutionStack();
        TypeDefinition type = reader.GetTypeDefinition(handle);
        string name = NameOf(reader, type.Namespace, type.Name);
        return type.GetDeclaringType() is { IsNil: false } outer ? GetTypeFromDefinition(reader, outer, rawTypeKind) + "/" + name : name;
    }

    public string GetTypeFromReference(MetadataReader reader, TypeReferenceHandle handle, byte rawTypeKind)
    {
        RuntimeHelpers.EnsureSufficientExecutionStack();
        TypeReference type = reader.GetTypeReference(handle);
        string name = NameOf(reader, type.Namespace, type.Name);
        return type.ResolutionScope.Kind == HandleKind.TypeReference
            ? GetTypeFromReference(reader, (TypeReferenceHandle)type.ResolutionScope, rawTypeKind) + "/" + name
            : name;
    }

    public string GetTypeFromSpecification(MetadataReader reader, object? genericContext, TypeSpecificationHandle handle, byte rawTypeKind)
    {
        RuntimeHelpers.EnsureSufficientExecutionStack();
        TypeSpecification type = reader.GetTypeSpecification(handle);
        return reader.GetBlobReader(type.Signature).Length <= AssemblyWeaver.LongestSignature
            ? type.DecodeSignature(this, genericContext)
            : throw new BadImageFormatException("A type has an unusually long signature.");
    }

    public string GetGenericInstantiation(string genericType, ImmutableArray<string> typeArguments) =>
        genericType + "<" + string.Join(',', typeArguments) + ">";

    public string GetGenericMethodParameter(object? genericContext, int index) => "!!" + index;

    public string GetGenericTypeParameter(object? genericContext, int index) => "!" + index;

    public string GetSZArrayType(string elementType) => elementType + "[]";

    public string GetArrayType(string elementType, ArrayShape shape) => elementType + "[" + new string(',', shape.Rank - 1) + "]";

    public string GetByReferenceType(string elementType) => elementType + "&";

    public string GetPointerType(string elementType) => elementType + "*";

    public string GetPinnedType(string elementType) => elementType;

    public string GetModifiedType(string modifier, string unmodifiedType, bool isRequired) => unmodifiedType;

    public string GetFunctionPointerType(MethodSignature<string> signature) =>
        "method " + signature.ReturnType + "*" + Of(signature.ParameterTypes);
}
