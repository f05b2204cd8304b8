using System.Buffers;
using System.Threading.Channels;
using MimeKit;
using SmtpServer;
using SmtpServer.Protocol;
using SmtpServer.Storage;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents the store of SmtpServer. It passes each mail to the test.</summary>
internal sealed class MailStore : MessageStore
{
    private readonly Channel<MimeMessage> _mails = Channel.CreateUnbounded<MimeMessage>();

    /// <summary>Gets the mails in the order of their arrival.</summary>
    public ChannelReader<MimeMessage> Mails => _mails.Reader;

    public override async Task<SmtpResponse> SaveAsync(
        ISessionContext context, IMessageTransaction transaction, ReadOnlySequence<byte> buffer, CancellationToken cancellationToken)
    {
        using MemoryStream content = new(buffer.ToArray());
        await _mails.Writer.WriteAsync(await MimeMessage.LoadAsync(content, cancellationToken), cancellationToken);
        return SmtpResponse.Ok;
    }
}
