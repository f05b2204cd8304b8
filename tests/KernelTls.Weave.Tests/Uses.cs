using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;

namespace KernelTls.Weave.Tests;

/// <summary>Finds the calls in an assembly.</summary>
internal static class Uses
{
    /// <summary>Returns the calls to members of a type, each with the calling class and method.</summary>
    public static IReadOnlyList<string> OfMembers(byte[] image, string type, params string[] members)
    {
        using PEReader pe = new(new MemoryStream(image));
        MetadataReader reader = pe.GetMetadataReader();
        List<string> found = [];
        foreach (MethodDefinitionHandle handle in reader.MethodDefinitions)
        {
            MethodDefinition method = reader.GetMethodDefinition(handle);
            if (method.RelativeVirtualAddress == 0)
            {
                continue;
            }

            int position = pe.PEHeaders.SectionHeaders[pe.PEHeaders.GetContainingSectionIndex(method.RelativeVirtualAddress)] is var s
                ? method.RelativeVirtualAddress - s.VirtualAddress + s.PointerToRawData : 0;
            foreach (Instruction instruction in MethodBody.Instructions(image, position))
            {
                if (instruction.OpCode is ILOpCode.Call or ILOpCode.Callvirt or ILOpCode.Newobj
                    && MetadataTokens.EntityHandle(BitConverter.ToInt32(image, instruction.OperandPosition)) is { Kind: HandleKind.MemberReference } target)
                {
                    MemberReference member = reader.GetMemberReference((MemberReferenceHandle)target);
                    if (member.Parent.Kind == HandleKind.TypeReference && members.Contains(reader.GetString(member.Name))
                        && SignatureText.Provider.GetTypeFromReference(reader, (TypeReferenceHandle)member.Parent, 0) == type)
                    {
                        found.Add($"{reader.GetString(method.Name)}: {reader.GetString(member.Name)}");
                    }
                }
            }
        }

        return found;
    }
}
