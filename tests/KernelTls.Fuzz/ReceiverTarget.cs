namespace KernelTls.Fuzz;

/// <summary>
/// Tests the receiving half on a model of the socket and of OpenSSL, whose operations return any result in any order.
/// </summary>
/// <remarks>
/// It must not hang or spin, must deliver each byte once and in order, must end as defined by the table in
/// docs/architecture/receiving.md ("Results of a receive"), and must stay ended.
/// </remarks>
internal sealed class ReceiverTarget : FuzzTarget
{
    private const int MostChoices = 240;

    public override string Name => "receiver";

    public override byte[] Create(Random random)
    {
        byte[] input = new byte[1 + random.Next(MostChoices)];
        random.NextBytes(input);
        return input;
    }

    public override async Task TryAsync(byte[] input)
    {
        using Receiving.ModelledReceiver receiver = new(new Choices(input));
        await receiver.ReadToTheEndAsync();
    }
}
