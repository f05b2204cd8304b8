using System.Net.Security;

namespace KernelTls.Handshake;

/// <summary>
/// Contains the callbacks given to the stream's constructor. A callback may be given either there or in the options.
/// </summary>
/// <param name="Sender">The stream to pass to callbacks.</param>
/// <param name="Validation">The callback that validates the peer's certificate.</param>
/// <param name="Selection">The callback that selects the local certificate.</param>
internal readonly record struct StreamCallbacks(
    object Sender, RemoteCertificateValidationCallback? Validation, LocalCertificateSelectionCallback? Selection)
{
    /// <summary>Returns the validation callback to use.</summary>
    /// <exception cref="InvalidOperationException">A different callback was given to the constructor.</exception>
    public RemoteCertificateValidationCallback? ValidationWith(RemoteCertificateValidationCallback? option) =>
        One(Validation, option, nameof(RemoteCertificateValidationCallback));

    /// <summary>Returns the selection callback to use.</summary>
    /// <exception cref="InvalidOperationException">A different callback was given to the constructor.</exception>
    public LocalCertificateSelectionCallback? SelectionWith(LocalCertificateSelectionCallback? option) =>
        One(Selection, option, nameof(LocalCertificateSelectionCallback));

    private static T? One<T>(T? constructor, T? option, string name)
        where T : Delegate =>
        constructor is not null && option is not null && !constructor.Equals(option)
            ? throw new InvalidOperationException(
                $"A {name} was given both to the constructor and in the options. Set only one of them.")
            : constructor ?? option;
}
