import Base
import Reactor

// How the stream of a connection opens: nothing is sent before, and not much time or work is spent on it.

extension Connection {
    /// Whether the stream may be read in this turn. To open a stream costs far more than to read an open one, so that
    /// only a few of a loop go on in a turn; the others are still readable in the next.
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
        // What there was to say before anybody could be told.
        if stage == .open, !output.isEmpty { markDirty() }
        armTimer(now: .now)
    }

    /// When a handshake must be over; never for one that has not begun.
    var handshakeDeadline: Instant {
        stage == .handshake ? acceptedAt.advanced(by: limits.tlsHandshakeTimeout) : .distantFuture
    }

    /// The stream has told its peer why. Closing now, with unread input, would make the kernel reset the connection,
    /// and that could be lost.
    func lingerAfterRefusal() {
        guard phase != .closed else { return }
        phase = .lingering
        cancelAllCalls()
        byteStream.closeForWriting()
        watch?.setReading(true)
        let now = Instant.now
        lingersUntil = now.advanced(by: .seconds(1))
        armTimer(now: now)
    }

    func blockReadByWrite() {
        isReadBlockedByWrite = true
        watch?.setReading(false)
        watch?.setWriting(true)
    }

    /// The descriptor takes bytes: the read that waited for this goes on.
    func unblockRead() {
        guard isReadBlockedByWrite else { return }
        isReadBlockedByWrite = false
        if !output.isBlocked { watch?.setWriting(false) }
        guard readingPausedSince == nil, phase != .peerClosed else { return }
        watch?.setReading(true)
        readable()
    }
}
