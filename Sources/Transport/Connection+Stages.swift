import Base
import Reactor

// How the stream of a connection opens. Nothing is sent before it is open, and the time and work of opening are
// bounded.

extension Connection {
    /// Whether the stream may be read in this turn. Opening a stream costs far more than reading an open one. So the
    /// handshakes of a loop have a short time in each turn; the others are still readable in the next turn.
    var mayReadNow: Bool { stage == .open || share.takeHandshakeTurn() }

    /// To be called after each read.
    func noteStage() {
        let former = stage
        guard former != .open, phase != .closed else { return }
        stage = byteStream.stage
        if former != .handshake, stage == .handshake { owner.handshakeBegan(self) }
        if former == .handshake, stage == .open {
            owner.handshakeEnded(self)
            if let certificate = byteStream.peerCertificate { dispatcher.identified(by: certificate, self) }
        }
        // Output that was appended before the stream was open.
        if stage == .open, !output.isEmpty { markDirty() }
        armTimer(now: .now)
    }

    /// The time by which a handshake must be over; `distantFuture` while no handshake is in flight.
    var handshakeDeadline: Instant {
        stage == .handshake ? pauses.deadline(of: limits.tlsHandshakeTimeout, begun: acceptedAt) : .distantFuture
    }

    /// Waits before the close. The stream has told its peer why it was refused. An immediate close, with unread input,
    /// would make the kernel reset the connection, and the reason could be lost.
    func lingerAfterRefusal() {
        guard phase != .closed else { return }
        linger()
        cancelAllCalls()
    }

    /// Ends a connection that begins as no protocol of this server does.
    func refuseProtocol() {
        let refusal = protocols.refusal(firstByte: input.readable.first ?? 0)
        guard !refusal.isEmpty else { return closeNow() }
        output.append { $0.append(contentsOf: refusal) }
        perform(.close)
    }

    /// Stops reading until the descriptor takes bytes.
    func blockReadByWrite() {
        isReadBlockedByWrite = true
        watch?.setReading(false)
        watch?.setWriting(true)
    }

    /// Resumes a read that waited until the descriptor takes bytes.
    func unblockRead() {
        guard isReadBlockedByWrite else { return }
        let readsOn = readingPausedSince == nil && phase != .peerClosed
        // The descriptor can still be written to in the next turn. Whether it can be read tells nothing: the peer may
        // wait for what a handshake writes when it goes on.
        let isDue = readsOn && !isReadDue
        guard !isDue || !share.isTurnFull && mayReadNow else { return }
        isReadBlockedByWrite = false
        if !output.isBlocked { watch?.setWriting(false) }
        guard readsOn else { return }
        watch?.setReading(true)
        if isDue { read() }
    }
}
