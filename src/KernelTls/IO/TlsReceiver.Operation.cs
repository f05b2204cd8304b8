using System.Net.Sockets;
using System.Threading.Tasks.Sources;

namespace KernelTls.IO;

// The asynchronous read.
internal sealed partial class TlsReceiver
{
    /// <summary>A read: what has to wait is resumed by the socket and completes the caller's value task.</summary>
    private sealed class Operation : SocketAsyncEventArgs, IValueTaskSource<int>
    {
        private readonly TlsReceiver _receiver;
        private ManualResetValueTaskSourceCore<int> _source;
        private Memory<byte> _buffer;
        private CancellationToken _cancellation;

        public Operation(TlsReceiver receiver)
            : base(true) => _receiver = receiver; // no ExecutionContext: the value task source below flows it

        /// <summary>A new task, in case the read has to wait; taken before it can complete on another thread.</summary>
        public short Begin(Memory<byte> buffer, CancellationToken cancellationToken)
        {
            _buffer = buffer;
            _cancellation = cancellationToken;
            return _source.Version;
        }

        /// <summary>False: the read waits, and completes the task.</summary>
        public bool TryRun(out int taken)
        {
            while (!_receiver.TryTake(_buffer.Span, out taken))
            {
                if (_receiver._source != Source.Wait)
                {
                    _ = OvercomeAsync();
                    return false;
                }

                SetBuffer(IsDirect ? _buffer : default);
                if (_receiver._socket.Start(this, _cancellation))
                {
                    return false;
                }

                // A small read that was filled at once found more than it asked for: the next one shares a receive.
                if (TryAccept(_buffer.Length < SmallRead && BytesTransferred == _buffer.Length, out taken))
                {
                    break;
                }
            }

            return true;
        }

        /// <summary>Only with this the operation is over, and can be another read's.</summary>
        public int GetResult(short token)
        {
            bool isOver = _source.GetStatus(token) != ValueTaskSourceStatus.Pending;
            try
            {
                return _source.GetResult(token);
            }
            finally
            {
                if (isOver)
                {
                    _source.Reset();
                    _receiver._spareOperation = this;
                }
            }
        }

        public ValueTaskSourceStatus GetStatus(short token) => _source.GetStatus(token);

        public void OnCompleted(
            Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
            _source.OnCompleted(continuation, state, token, flags);

        /// <summary>The caller's memory and token are not referenced any longer than its read.</summary>
        public void Forget()
        {
            _buffer = default;
            _cancellation = default;
            SetBuffer(default);
        }

        protected override void OnCompleted(SocketAsyncEventArgs e)
        {
            int taken;
            try
            {
                if (!TryAccept(hasMore: false, out taken) && !TryRun(out taken))
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

        /// <summary>Straight into the caller's memory; otherwise the socket only says when there is something.</summary>
        private bool IsDirect => _receiver._kernel && !_buffer.IsEmpty;

        private bool TryAccept(bool hasMore, out int taken)
        {
            if (SocketError == SocketError.OperationAborted && _cancellation.IsCancellationRequested)
            {
                throw new OperationCanceledException(_cancellation);
            }

            SocketOutcome outcome = _receiver._socket.OutcomeOf(BytesTransferred, SocketError);
            if (IsDirect)
            {
                return _receiver.TryAccept(outcome, hasMore, out taken);
            }

            taken = 0;
            _receiver.Accept(outcome);
            return false;
        }

        /// <summary>A detour of the read that waits: it goes on when OpenSSL has sent what it had to.</summary>
        private async Task OvercomeAsync()
        {
            int taken;
            try
            {
                await _receiver.OvercomeAsync(_cancellation).ConfigureAwait(false);
                if (!TryRun(out taken))
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
    }
}
