using System.Buffers.Binary;
using System.Reflection;
using System.Reflection.Emit;
using System.Reflection.Metadata;

namespace KernelTls.Weave;

/// <summary>Reads the instructions of a method body in place (ECMA-335, II.25.4 and III).</summary>
internal static class MethodBody
{
    private const int Prefix = 0xFE;

    // By opcode; those of two bytes from 256 on.
    private static readonly OperandType?[] s_operands = ReadOperands();

    /// <summary>Returns the instructions of a body.</summary>
    /// <param name="image">The assembly.</param>
    /// <param name="position">The position of the body's header.</param>
    /// <exception cref="BadImageFormatException">The bytes are no valid instruction.</exception>
    public static IEnumerable<Instruction> Instructions(byte[] image, int position)
    {
        const int FormatMask = 3, Tiny = 2, Fat = 3;
        int start, length;
        switch (image[position] & FormatMask)
        {
            case Tiny:
                start = position + 1;
                length = image[position] >> 2;
                break;
            case Fat:
                start = position + ((image[position + 1] >> 4) * 4);
                length = BinaryPrimitives.ReadInt32LittleEndian(image.AsSpan(position + 4));
                break;
            default:
                throw new BadImageFormatException("A method body has no header.");
        }

        for (int at = start; at < start + length;)
        {
            int operand = image[at] == Prefix ? at + 2 : at + 1;
            int code = image[at] == Prefix ? (Prefix << 8) + image[at + 1] : image[at];
            yield return new Instruction((ILOpCode)code, at, operand, at - start);
            at = operand + LengthOf(code, image, operand);
        }
    }

    private static int LengthOf(int code, byte[] image, int operand) => s_operands[code > byte.MaxValue ? 256 + (code & 0xFF) : code] switch
    {
        OperandType.InlineNone => 0,
        OperandType.ShortInlineBrTarget or OperandType.ShortInlineI or OperandType.ShortInlineVar => 1,
        OperandType.InlineVar => 2,
        OperandType.InlineI8 or OperandType.InlineR => 8,
        OperandType.InlineSwitch => LengthOfSwitch(BinaryPrimitives.ReadInt32LittleEndian(image.AsSpan(operand)), image.Length - operand),
        not null => 4,
        null => throw new BadImageFormatException($"A method body has the unknown opcode 0x{code:x}."),
    };

    private static int LengthOfSwitch(int targets, int rest) => targets >= 0 && targets < rest / 4
        ? 4 + (4 * targets)
        : throw new BadImageFormatException($"A switch has {targets} targets.");

    private static OperandType?[] ReadOperands()
    {
        OperandType?[] operands = new OperandType?[512];
        foreach (FieldInfo field in typeof(OpCodes).GetFields(BindingFlags.Public | BindingFlags.Static))
        {
            OpCode code = (OpCode)field.GetValue(null)!;
            operands[code.Size == 1 ? (byte)code.Value : 256 + (byte)code.Value] = code.OperandType;
        }

        return operands;
    }
}
