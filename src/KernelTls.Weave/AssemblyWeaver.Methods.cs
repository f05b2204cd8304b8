using System.Buffers.Binary;
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;

namespace KernelTls.Weave;

// The bodies of methods: the members that they use, and the replacements.
internal sealed partial class AssemblyWeaver
{
    /// <summary>The longest signature, in bytes, that a replaced member can have.</summary>
    internal const int LongestSignature = 1024;

    /// <summary>Returns the replacement of a member, or null if its type has no replacements.</summary>
    private static MemberReplacement? MemberOf(MetadataReader reader, MemberReferenceHandle handle, Replacements replacements)
    {
        MemberReference member = reader.GetMemberReference(handle);
        if (member.Parent.Kind != HandleKind.TypeReference || member.GetKind() != MemberReferenceKind.Method
            || !IsReplaced(reader, (TypeReferenceHandle)member.Parent, replacements, out TypeReplacement? type))
        {
            return null;
        }

        // The decoder calls itself for each level of a type.
        if (reader.GetBlobReader(member.Signature).Length > LongestSignature)
        {
            return null;
        }

        MethodSignature<string> signature = member.DecodeMethodSignature(SignatureText.Provider, null);
        if (!signature.Header.IsInstance)
        {
            return null;
        }

        string name = reader.GetString(member.Name);
        string parameters = SignatureText.Of(signature.ParameterTypes);
        return new MemberReplacement(
            (TypeReferenceHandle)member.Parent,
            name,
            name == ".ctor" ? type!.Constructors.GetValueOrDefault(parameters) : null,
            type!.Members.Contains(name + parameters),
            type.BaseClass);
    }

    private void FindMembers()
    {
        foreach (MemberReferenceHandle handle in _reader.MemberReferences)
        {
            if (MemberOf(_reader, handle, _replacements) is { } member)
            {
                _members[handle] = member;
            }
        }
    }

    private void WeaveMethod(MethodDefinition method)
    {
        if (method.RelativeVirtualAddress == 0 || (method.ImplAttributes & MethodImplAttributes.CodeTypeMask) != MethodImplAttributes.IL)
        {
            return;
        }

        PEHeaders headers = _pe.PEHeaders;
        SectionHeader section = headers.SectionHeaders[headers.GetContainingSectionIndex(method.RelativeVirtualAddress)];
        int position = method.RelativeVirtualAddress - section.VirtualAddress + section.PointerToRawData;
        Instruction previous = default;
        foreach (Instruction instruction in MethodBody.Instructions(_image, position))
        {
            if (instruction.OpCode is ILOpCode.Call or ILOpCode.Callvirt or ILOpCode.Newobj or ILOpCode.Ldftn or ILOpCode.Ldvirtftn or ILOpCode.Ldtoken)
            {
                EntityHandle target = MetadataTokens.EntityHandle(BinaryPrimitives.ReadInt32LittleEndian(_image.AsSpan(instruction.OperandPosition)));
                if (target.Kind == HandleKind.MemberReference
                    && _members.TryGetValue((MemberReferenceHandle)target, out MemberReplacement? member))
                {
                    Replace(method, instruction, previous, (MemberReferenceHandle)target, member);
                }
            }

            previous = instruction;
        }
    }

    private void Replace(
        MethodDefinition method, Instruction instruction, Instruction previous, MemberReferenceHandle target, MemberReplacement member)
    {
        switch (instruction.OpCode)
        {
            case ILOpCode.Newobj when member.Constructor is { } constructor:
                Write(instruction, ILOpCode.Call, _references.Constructor(target, constructor));
                _places.Add($"{Where(method, instruction)}: new {NameOf(member.Type)}");
                break;
            case ILOpCode.Call or ILOpCode.Callvirt when member.IsReplacedByStatic && previous.OpCode == ILOpCode.Constrained:
            case ILOpCode.Ldtoken when member.IsReplacedByStatic || member.Constructor is not null:
                _problems.Add($"{Where(method, instruction)}: {NameOf(member.Type)}.{member.Name} is "
                    + (instruction.OpCode == ILOpCode.Ldtoken ? "used by reflection or in an expression tree" : "called through a type parameter"));
                break;
            case ILOpCode.Call or ILOpCode.Callvirt when member.IsReplacedByStatic:
                Write(instruction, ILOpCode.Call, _references.StaticMember(target));
                AddMemberPlace();
                break;
            case ILOpCode.Ldftn when member.IsReplacedByStatic:
                Write(instruction, ILOpCode.Ldftn, _references.StaticMember(target));
                AddMemberPlace();
                break;
            case ILOpCode.Ldvirtftn when member.IsReplacedByStatic:
                ReplaceVirtualFunction(method, instruction, previous, target, member);
                break;
            case ILOpCode.Call or ILOpCode.Ldftn when member.BaseClass is { } baseClass && IsDerived(method, member):
                // A constructor calls that of its base class, and an override what it overrides.
                Write(instruction, instruction.OpCode, _references.BaseMember(target, baseClass));
                break;
        }

        void AddMemberPlace() => _places.Add($"{Where(method, instruction)}: {NameOf(member.Type)}.{member.Name}");
    }

    /// <summary>Replaces an instruction that takes the object which the instruction before it duplicates. A static method needs no object.</summary>
    private void ReplaceVirtualFunction(
        MethodDefinition method, Instruction instruction, Instruction previous, MemberReferenceHandle target, MemberReplacement member)
    {
        string place = $"{Where(method, instruction)}: {NameOf(member.Type)}.{member.Name}";
        if (previous.OpCode == ILOpCode.Dup)
        {
            _result[previous.Position] = (byte)ILOpCode.Nop;
            Write(instruction, ILOpCode.Ldftn, _references.StaticMember(target));
            _places.Add(place);
        }
        else
        {
            _problems.Add($"{place} is taken as a delegate in a way that no compiler is known for");
        }
    }

    private bool IsDerived(MethodDefinition method, MemberReplacement member) =>
        _derived.TryGetValue(method.GetDeclaringType(), out TypeReferenceHandle type) && type == member.Type;

    private void Write(Instruction instruction, ILOpCode code, int token)
    {
        _result[instruction.OperandPosition - 1] = (byte)code;
        BinaryPrimitives.WriteInt32LittleEndian(_result.AsSpan(instruction.OperandPosition), token);
    }

    private string Where(MethodDefinition method, Instruction instruction) =>
        $"{SignatureText.Provider.GetTypeFromDefinition(_reader, method.GetDeclaringType(), 0)}.{_reader.GetString(method.Name)}+0x{instruction.Offset:x}";
}
