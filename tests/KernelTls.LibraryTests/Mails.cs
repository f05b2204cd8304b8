using KernelTls.Tests;
using MimeKit;

namespace KernelTls.LibraryTests;

/// <summary>Creates mails, and checks that their content arrived unchanged.</summary>
internal static class Mails
{
    public static MimeMessage Small(int number) => Mail($"number {number}", new TextPart("plain") { Text = $"{number}" });

    public static MimeMessage Large(int size) => Mail("large", new MimePart("application", "octet-stream")
    {
        Content = new MimeContent(new MemoryStream(Pattern.Take(size))),
        ContentTransferEncoding = ContentEncoding.Base64,
    });

    public static void AssertLarge(int size, MimeMessage mail)
    {
        using MemoryStream content = new();
        ((MimePart)mail.Body!).Content!.DecodeTo(content);
        Assert.Equal(size, content.Length);
        Pattern.AssertAt(0, content.ToArray());
    }

    private static MimeMessage Mail(string subject, MimeEntity body) => new(
        [new MailboxAddress("a sender", "sender@client.test")], [new MailboxAddress("a recipient", "nobody@localhost")], subject, body);
}
