using System.Net.Security;
using System.Reflection;
using System.Reflection.Emit;

namespace KernelTls.Weave.Tests;

/// <summary>Tests instructions that other compilers emit and the C# compiler does not.</summary>
public class UnusualCodeTests
{
    private static readonly MethodInfo s_shake = typeof(SslStream).GetMethod(
        nameof(SslStream.AuthenticateAsClient), [typeof(SslClientAuthenticationOptions)])!;

    private static readonly ConstructorInfo s_delegate =
        typeof(Action<SslClientAuthenticationOptions>).GetConstructors().Single();

    [Fact]
    public void A_delegate_by_a_virtual_function_of_the_copied_object_is_woven()
    {
        byte[] image = Emit(il =>
        {
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Dup);
            il.Emit(OpCodes.Ldvirtftn, s_shake);
            il.Emit(OpCodes.Newobj, s_delegate);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Callvirt, s_delegate.DeclaringType!.GetMethod("Invoke")!);
        });

        Assert.Throws<KtlsNotAvailableException>(() => Run(Woven(image)));
    }

    [Fact]
    public void A_delegate_by_a_virtual_function_of_another_object_is_a_problem()
    {
        byte[] image = Emit(il =>
        {
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldvirtftn, s_shake);
            il.Emit(OpCodes.Newobj, s_delegate);
            il.Emit(OpCodes.Pop);
        });

        WeaveResult result = AssemblyWeaver.Weave(image, Compiled.Replacements);

        Assert.Null(result.Image);
        Assert.Equal(
            "Sample.Run+0x2: SslStream.AuthenticateAsClient is taken as a delegate in a way that no compiler is known for",
            Assert.Single(result.Problems));
    }

    [Fact]
    public void A_call_through_a_type_parameter_is_a_problem()
    {
        byte[] image = Emit(il =>
        {
            il.Emit(OpCodes.Ldarga_S, (byte)0);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Constrained, typeof(SslStream));
            il.Emit(OpCodes.Callvirt, s_shake);
        });

        Assert.Equal(
            "Sample.Run+0x9: SslStream.AuthenticateAsClient is called through a type parameter",
            Assert.Single(AssemblyWeaver.Weave(image, Compiled.Replacements).Problems));
    }

    [Fact]
    public void A_tail_call_is_woven()
    {
        byte[] image = Emit(il =>
        {
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Tailcall);
            il.Emit(OpCodes.Callvirt, s_shake);
        });

        Assert.Throws<KtlsNotAvailableException>(() => Run(Woven(image)));
    }

    /// <summary>The reader steps over operands of every kind, and finds the instruction after them.</summary>
    [Fact]
    public void What_stands_behind_a_switch_and_long_operands_is_woven()
    {
        byte[] image = Emit(il =>
        {
            Label[] labels = [il.DefineLabel(), il.DefineLabel(), il.DefineLabel()];
            LocalBuilder local = il.DeclareLocal(typeof(long));
            il.Emit(OpCodes.Ldc_I8, 0x2873_6F73_2873_6F73);
            il.Emit(OpCodes.Stloc, local);
            il.Emit(OpCodes.Ldc_R8, 1.5);
            il.Emit(OpCodes.Pop);
            il.Emit(OpCodes.Ldc_I4, 7);
            il.Emit(OpCodes.Switch, labels);
            Array.ForEach(labels, il.MarkLabel);
            il.Emit(OpCodes.Ldstr, "text");
            il.Emit(OpCodes.Pop);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Callvirt, s_shake);
        });

        Assert.Throws<KtlsNotAvailableException>(() => Run(Woven(image)));
    }

    private static Assembly Woven(byte[] image)
    {
        WeaveResult result = AssemblyWeaver.Weave(image, Compiled.Replacements);
        Assert.Empty(result.Problems);
        Assert.Single(result.Places);
        return Compiled.Load(result.Image!);
    }

    private static void Run(Assembly assembly) => Compiled.Run(
        assembly,
        new KtlsStream(new MemoryStream(), false, new KtlsOptions { Mode = KtlsMode.Required }),
        new SslClientAuthenticationOptions());

    /// <summary>Creates an assembly with one method, whose parameters are a stream and options.</summary>
    private static byte[] Emit(Action<ILGenerator> body)
    {
        PersistedAssemblyBuilder assembly = new(new AssemblyName("Unusual"), typeof(object).Assembly);
        TypeBuilder type = assembly.DefineDynamicModule("Unusual").DefineType("Sample", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod(
            "Run", MethodAttributes.Public | MethodAttributes.Static, null, [typeof(SslStream), typeof(SslClientAuthenticationOptions)]);
        ILGenerator il = method.GetILGenerator();
        body(il);
        il.Emit(OpCodes.Ret);
        type.CreateType();
        using MemoryStream image = new();
        assembly.Save(image);
        return image.ToArray();
    }
}
