namespace KernelTls.Fuzz;

/// <summary>Defines the code under test and the conditions that must hold.</summary>
internal abstract class FuzzTarget
{
    /// <summary>Gets the name on the command line.</summary>
    public abstract string Name { get; }

    /// <summary>Creates an input.</summary>
    public abstract byte[] Create(Random random);

    /// <summary>Tests an input.</summary>
    /// <exception cref="FuzzException">A condition does not hold.</exception>
    public abstract Task TryAsync(byte[] input);
}
