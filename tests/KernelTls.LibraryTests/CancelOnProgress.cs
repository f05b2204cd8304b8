using MailKit;

namespace KernelTls.LibraryTests;

/// <summary>Cancels one of MailKit's commands after the first part of a message.</summary>
internal sealed class CancelOnProgress(CancellationTokenSource cancellation) : ITransferProgress
{
    public void Report(long bytesTransferred, long totalSize) => cancellation.Cancel();

    public void Report(long bytesTransferred) => cancellation.Cancel();
}
