using System.Diagnostics.Tracing;
using KernelTls.IO;

namespace KernelTls.Diagnostics;

/// <summary>Provides the event source <c>KernelTls</c>.</summary>
internal static class KtlsEventSource
{
    /// <summary>The argument of a session that makes this source write the status of the process.</summary>
    public const string StatusArgument = "KernelTlsStatus";

    /// <summary>Gets the event source.</summary>
    public static KernelTls Log { get; } = new();

    /// <summary>
    /// Returns whether the reason is no fallback: the direction is in the kernel, or kernel TLS was not requested for
    /// it.
    /// </summary>
    public static bool IsChoice(KtlsFallbackReason reason) => reason is KtlsFallbackReason.None
        or KtlsFallbackReason.NotEnabled
        or KtlsFallbackReason.DisabledByMode
        or KtlsFallbackReason.DirectionNotRequested;

    /// <summary>
    /// Implements the event source: results of handshakes, fallbacks, key changes, failed connections, and their counters.
    /// </summary>
    /// <remarks>
    /// <para>Without a listener an event costs one flag test, and a counter one addition.</para>
    /// <para>
    /// Its type has its name. <see cref="EventSourceAttribute.Name"/> would cost the first handshake of a process 6 % more
    /// instructions on .NET 11, because reflection generates code for a property of attributes that it sets again.
    /// </para>
    /// </remarks>
    internal sealed class KernelTls : EventSource
    {
        private long _handshakes;
        private long _failedHandshakes;
        private long _connections;
        private long _fallbacks;
        private long _keyUpdates;
        private long _failedConnections;
        private DiagnosticCounter[]? _counters;

        /// <summary>Reports that a handshake on OpenSSL succeeded.</summary>
        [NonEvent]
        public void HandshakeCompleted(TlsSession session)
        {
            Interlocked.Increment(ref _handshakes);
            KtlsOffload planned = session.PlannedOffload;
            if (!IsChoice(planned.SendFallbackReason) || !IsChoice(planned.ReceiveFallbackReason))
            {
                Interlocked.Increment(ref _fallbacks);
            }

            // Without a query of the socket for the device.
            ProcessStatus.Connections.Add(new ConnectionKind(session.Settings.IsServer, session.Protocol, planned, session.Library));
            if (IsEnabled(EventLevel.Informational, EventKeywords.None))
            {
                KtlsOffload offload = session.Offload;
                HandshakeCompleted(
                    session.Settings.IsServer,
                    session.Protocol.ToString(),
                    session.CipherSuite.ToString(),
                    offload.Send.ToString(),
                    offload.SendFallbackReason.ToString(),
                    offload.Receive.ToString(),
                    offload.ReceiveFallbackReason.ToString(),
                    session.Library);
            }
        }

        /// <summary>
        /// Reports that the base class performs the handshake, for a reason other than kernel TLS not being requested.
        /// </summary>
        [NonEvent]
        public void Fallback(bool isServer, KtlsFallbackReason reason, string detail, string library = "")
        {
            Interlocked.Increment(ref _fallbacks);
            if (IsEnabled(EventLevel.Warning, EventKeywords.None))
            {
                Fallback(isServer, reason.ToString(), detail, library);
            }
        }

        /// <summary>Reports that a handshake on OpenSSL failed.</summary>
        [NonEvent]
        public void HandshakeFailed(bool isServer, Exception failure)
        {
            Interlocked.Increment(ref _failedHandshakes);
            if (IsEnabled(EventLevel.Warning, EventKeywords.None))
            {
                HandshakeFailed(isServer, failure.GetType().FullName ?? "", failure.Message);
            }
        }

        /// <summary>Counts a connection on OpenSSL that begins (1) or has ended (-1).</summary>
        [NonEvent]
        public void CountConnection(int change) => Interlocked.Add(ref _connections, change);

        /// <summary>
        /// Reports that the socket refused an option of <see cref="KtlsOptions"/>. The connection continues without it.
        /// </summary>
        [Event(4, Level = EventLevel.Warning)]
        public void SocketOptionRefused(bool isServer, string option, string error)
        {
            if (IsEnabled(EventLevel.Warning, EventKeywords.None))
            {
                WriteEvent(4, isServer, option, error);
            }
        }

        /// <summary>Reports that this end changed its sending key.</summary>
        [NonEvent]
        public void KeyUpdated(KeyUpdateCause cause)
        {
            Interlocked.Increment(ref _keyUpdates);
            if (IsEnabled(EventLevel.Informational, EventKeywords.None))
            {
                KeyUpdated(cause.ToString());
            }
        }

        /// <summary>
        /// Reports that SslStream performed a handshake although kernel TLS is switched on for the process. Written once
        /// for each kind.
        /// </summary>
        [NonEvent]
        public void StockHandshake(StockHandshake kind)
        {
            if (IsEnabled(EventLevel.Warning, EventKeywords.None))
            {
                StockHandshake(kind.IsServer, kind.TargetHost, kind.Assembly, kind.Caller, kind.Origin);
            }
        }

        /// <summary>
        /// Reports that a connection failed after the handshake, because of a reset, an end within a record, a record that cannot be
        /// decrypted, or an alert.
        /// </summary>
        [NonEvent]
        public void ConnectionFailed(Exception failure)
        {
            Interlocked.Increment(ref _failedConnections);
            if (IsEnabled(EventLevel.Warning, EventKeywords.None))
            {
                ConnectionFailed(failure.GetType().FullName ?? "", failure.Message);
            }
        }

        /// <summary>
        /// Reports that a peer ended a connection without close_notify, and that this was reported as the end of the stream.
        /// </summary>
        [Event(8, Level = EventLevel.Informational)]
        public void EndedWithoutCloseNotify()
        {
            if (IsEnabled(EventLevel.Informational, EventKeywords.None))
            {
                WriteEvent(8);
            }
        }

        /// <summary>
        /// Reports that peers pad their records, so that connections with <see cref="KtlsExpectNoPadding.Automatic"/> expect padding for a
        /// minute.
        /// </summary>
        [Event(10, Level = EventLevel.Informational)]
        public void PaddedRecords(long count)
        {
            if (IsEnabled(EventLevel.Informational, EventKeywords.None))
            {
                WriteEvent(10, count);
            }
        }

        [NonEvent]
        protected override void OnEventCommand(EventCommandEventArgs command)
        {
            if (command.Command == EventCommand.Enable)
            {
                if (command.Arguments?.ContainsKey(StatusArgument) == true)
                {
                    WriteStatus();
                }

                _counters ??=
                [
                    Count("handshakes", "Handshakes", () => Interlocked.Read(ref _handshakes)),
                    Count("failed-handshakes", "Failed Handshakes", () => Interlocked.Read(ref _failedHandshakes)),
                    Count("current-connections", "Current Connections", () => Interlocked.Read(ref _connections)),
                    Count("fallbacks", "Fallbacks", () => Interlocked.Read(ref _fallbacks)),
                    Count("key-updates", "Key Updates", () => Interlocked.Read(ref _keyUpdates)),
                    Count("failed-connections", "Failed Connections", () => Interlocked.Read(ref _failedConnections)),
                ];
            }

            DiagnosticCounter Count(string name, string title, Func<double> read) => new PollingCounter(name, this, read) { DisplayName = title };
        }

        /// <summary>Writes what has happened before the session, to all listeners.</summary>
        [NonEvent]
        private void WriteStatus()
        {
            foreach ((StatusEntry entry, long count) in ProcessStatus.Read())
            {
                Status(entry.What, entry.Subject, entry.State, entry.Detail, count);
            }

            Status("end", "", "", "", 0);
        }

        [Event(1, Level = EventLevel.Informational, Version = 1)]
        private void HandshakeCompleted(
            bool isServer, string protocol, string cipherSuite, string send, string sendReason, string receive, string receiveReason, string library) =>
            WriteEvent(1, isServer, protocol, cipherSuite, send, sendReason, receive, receiveReason, library);

        [Event(2, Level = EventLevel.Warning, Version = 1)]
        private void Fallback(bool isServer, string reason, string detail, string library) => WriteEvent(2, isServer, reason, detail, library);

        [Event(3, Level = EventLevel.Warning)]
        private void HandshakeFailed(bool isServer, string exceptionType, string message) =>
            WriteEvent(3, isServer, exceptionType, message);

        [Event(5, Level = EventLevel.Informational)]
        private void KeyUpdated(string cause) => WriteEvent(5, cause);

        [Event(6, Level = EventLevel.Warning)]
        private void ConnectionFailed(string exceptionType, string message) => WriteEvent(6, exceptionType, message);

        [Event(7, Level = EventLevel.Warning, Version = 1)]
        private void StockHandshake(bool isServer, string targetHost, string assembly, string caller, string origin) =>
            WriteEvent(7, isServer, targetHost, assembly, caller, origin);

        [Event(9, Level = EventLevel.Informational)]
        private void Status(string what, string subject, string state, string detail, long count) =>
            WriteEvent(9, what, subject, state, detail, count);
    }
}
