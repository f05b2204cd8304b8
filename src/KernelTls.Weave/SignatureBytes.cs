using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Runtime.CompilerServices;

namespace KernelTls.Weave;

/// <summary>
/// Makes the signature of a static method from that of the instance method or constructor that it replaces (ECMA-335, II.23.2.1). The
/// types are copied, so that they are references of the woven assembly.
/// </summary>
internal static class SignatureBytes
{
    /// <summary>Returns the signature of a method that takes <paramref name="receiver"/> first.</summary>
    public static byte[] WithReceiver(BlobReader method, EntityHandle receiver)
    {
        (int count, byte[] returned, byte[] parameters) = Split(method);
        return Join(count + 1, returned, [.. ClassOf(receiver), .. parameters]);
    }

    /// <summary>Returns the signature of a method that takes a constructor's parameters and returns what it constructs.</summary>
    public static byte[] Returning(BlobReader constructor, EntityHandle constructed)
    {
        (int count, _, byte[] parameters) = Split(constructor);
        return Join(count, ClassOf(constructed), parameters);
    }

    /// <summary>Returns the signature of a generic type with one type argument, both of them classes (II.23.2.14).</summary>
    public static byte[] Instantiation(EntityHandle genericType, EntityHandle argument) =>
        [(byte)SignatureTypeCode.GenericTypeInstance, .. ClassOf(genericType), 1, .. ClassOf(argument)];

    private static byte[] Join(int count, byte[] returned, byte[] parameters)
    {
        BlobBuilder signature = new();
        signature.WriteByte((byte)SignatureKind.Method);
        signature.WriteCompressedInteger(count);
        signature.WriteBytes(returned);
        signature.WriteBytes(parameters);
        return signature.ToArray();
    }

    private static byte[] ClassOf(EntityHandle type)
    {
        BlobBuilder signature = new();
        signature.WriteByte((byte)SignatureTypeKind.Class);
        signature.WriteCompressedInteger(CodedIndex.TypeDefOrRefOrSpec(type));
        return signature.ToArray();
    }

    private static (int Count, byte[] Returned, byte[] Parameters) Split(BlobReader method)
    {
        method.ReadSignatureHeader();
        int count = method.ReadCompressedInteger();
        BlobReader rest = method;
        Skip(ref method);
        int length = method.Offset - rest.Offset;
        return (count, rest.ReadBytes(length), method.ReadBytes(method.RemainingBytes));
    }

    /// <summary>Skips one type.</summary>
    private static void Skip(ref BlobReader reader)
    {
        RuntimeHelpers.EnsureSufficientExecutionStack();
        switch (reader.ReadCompressedInteger())
        {
            case (int)SignatureTypeCode.RequiredModifier or (int)SignatureTypeCode.OptionalModifier:
                reader.ReadCompressedInteger();
                Skip(ref reader);
                break;
            case (int)SignatureTypeKind.Class or (int)SignatureTypeKind.ValueType
                or (int)SignatureTypeCode.GenericTypeParameter or (int)SignatureTypeCode.GenericMethodParameter:
                reader.ReadCompressedInteger();
                break;
            case (int)SignatureTypeCode.SZArray or (int)SignatureTypeCode.ByReference or (int)SignatureTypeCode.Pointer:
                Skip(ref reader);
                break;
            case (int)SignatureTypeCode.GenericTypeInstance:
                Skip(ref reader);
                for (int arguments = reader.ReadCompressedInteger(); arguments > 0; arguments--)
                {
                    Skip(ref reader);
                }

                break;
            case (int)SignatureTypeCode.Array or (int)SignatureTypeCode.FunctionPointer:
                throw new NotSupportedException("None of the replaced members returns such a type.");
        }
    }
}
