namespace KernelTls.Fuzz;

/// <summary>Represents an input as a list of choices. After its end every choice is the first one.</summary>
internal sealed class Choices(byte[] input)
{
    private int _at;

    /// <summary>Gets a value that indicates whether the input has no more choices.</summary>
    public bool AreOver => _at >= input.Length;

    /// <summary>Returns a number below <paramref name="count"/>, which is at most 256.</summary>
    public int Take(int count) => AreOver ? 0 : input[_at++] % count;

    /// <summary>Returns one of the values.</summary>
    public T TakeOneOf<T>(params ReadOnlySpan<T> values) => values[Take(values.Length)];

    /// <summary>
    /// Returns a size from 1 to <paramref name="most"/>. Half of the results are the largest size or 1.
    /// </summary>
    public int TakeSize(int most) => Take(4) switch
    {
        0 => most,
        1 => 1,
        _ => 1 + (((Take(256) << 8) | Take(256)) % most),
    };
}
