using System.Net.Sockets;
using System.Threading.Tasks.Sources;

namespace KernelTls.IO;

// The asynchronous read without a cancellation token, which is nearly every read.
internal sealed partial class TlsReceiver
{
    /// <summary>The read that waits: resumed by the socket, completes the caller's value task.</summary>
    private sealed class Operation : SocketAsyncEventArgs, IValueTaskSource<int>
    {
        private readonly TlsReceiver _receiver;
        private ManualResetValueTaskSourceCore<int> _source;
        private Memory<byte> _buffer;

        public Operation(TlsReceiver receiver)
            : base(true) => _receiver = receiver; // no ExecutionContext: the value task source below flows it

        /// <summary>A new task, in case the read has to wait; taken before it can complete on another thread.</summary>
        public short Begin()
        {
            _source.Reset();
            return _source.Version;
        }

        /// <summary>False: the read waits, and completes the task.</summary>
        public bool TryRun(Memory<byte> buffer, out int taken)
        {
            while (!_receiver.TryTake(buffer.Span, out taken))
            {
                _buffer = buffer;
                if (_receiver._certificateDue)
                {
                    _ = AnswerAsync();
                    return false;
                }

                SetBuffer(_receiver._kernel ? buffer : default);
                if (_receiver._socket.Socket.ReceiveAsync(this))
                {
                    return false;
                }

                if (_receiver.TryAccept(Outcome, buffer.Length, out taken))
                {
                    Forget();
                    break;
                }
            }

            return true;
        }

        public int GetResult(short token) => _source.GetResult(token);

        public ValueTaskSourceStatus GetStatus(short token) => _source.GetStatus(token);

        public void OnCompleted(
            Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
            _source.OnCompleted(continuation, state, token, flags);

        protected override void OnCompleted(SocketAsyncEventArgs e)
        {
            int taken;
            try
            {
                if (!_receiver.TryAccept(Outcome, _buffer.Length, out taken) && !TryRun(_buffer, out taken))
                {
                    return;
                }
            }
            catch (Exception failure)
            {
                Fail(failure);
                return;
            }

            Complete(taken);
        }

        /// <summary>A detour of the read that waits: it goes on when the peer's CertificateRequest is answered.</summary>
        private async Task AnswerAsync()
        {
            int taken;
            try
            {
                await _receiver.AnswerAsync(CancellationToken.None).ConfigureAwait(false);
                if (!TryRun(_buffer, out taken))
                {
                    return;
                }
            }
            catch (Exception failure)
            {
                Fail(failure);
                return;
            }

            Complete(taken);
        }

        private void Fail(Exception failure)
        {
            Forget();
            _receiver.Leave();
            _source.SetException(_receiver.Translate(failure));
        }

        private void Complete(int taken)
        {
            // The next read must be possible before the caller goes on.
            Forget();
            _receiver.Leave();
            _source.SetResult(taken);
        }

        private SocketOutcome Outcome => _receiver._socket.OutcomeOf(BytesTransferred, SocketError);

        /// <summary>The caller's memory is not referenced any longer than its read.</summary>
        private void Forget()
        {
            _buffer = default;
            SetBuffer(default);
        }
    }
}
