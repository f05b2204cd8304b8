using System.Net.Security;

namespace KernelTls.Handshake;

/// <summary>What the stream's constructor was given for its handshake. A callback may be given there or in the options, not two of a kind.</summary>
/// <param name="Sender">The stream, as callbacks see it.</param>
/// <param name="Validation">Judges the peer's certificate.</param>
/// <param name="Selection">Chooses the own certificate.</param>
internal readonly record struct StreamCallbacks(
    object Sender, RemoteCertificateValidationCallback? Validation, LocalCertificateSelectionCallback? Selection)
{
    /// <exception cref="InvalidOperationException">Another one was given to the constructor.</exception>
    public RemoteCertificateValidationCallback? ValidationWith(RemoteCertificateValidationCallback? option) =>
        One(Validation, option, nameof(RemoteCertificateValidationCallback));

    /// <exception cref="InvalidOperationException">Another one was given to the constructor.</exception>
    public LocalCertificateSelectionCallback? SelectionWith(LocalCertificateSelectionCallback? option) =>
        One(Selection, option, nameof(LocalCertificateSelectionCallback));

    private static T? One<T>(T? constructor, T? option, string name)
        where T : Delegate =>
        constructor is not null && option is not null && !constructor.Equals(option)
            ? throw new InvalidOperationException(
                $"A {name} was given both to the constructor and in the options: give one of them.")
            : constructor ?? option;
}
