using System.Reflection.Metadata;

namespace KernelTls.Weave;

/// <summary>An instruction of a method body.</summary>
/// <param name="OpCode">The opcode.</param>
/// <param name="Position">The position in the image.</param>
/// <param name="OperandPosition">The position of the operand in the image.</param>
/// <param name="Offset">The offset in the body.</param>
internal readonly record struct Instruction(ILOpCode OpCode, int Position, int OperandPosition, int Offset);
