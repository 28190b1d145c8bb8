import Base
import Reactor
import Wire

extension Connection {
    /// The frames of one read are decoded for so long; the rest in later turns of the loop.
    private static let decodingMax = Duration.milliseconds(1)

    /// One read per event: level-triggered readiness comes back for the rest, after the other connections' turn.
    func readable() {
        guard phase != .closed, !isReadDue else { return }
        if share.isTurnFull { waitToRead() } else if mayReadNow { read() }
    }

    /// Reads into the loop's buffer and keeps only what was not decoded: the beginning of an unfinished frame, or what
    /// waits for another turn. A connection between two requests holds no input memory at all.
    func read() {
        readStep()
        // Input that the descriptor does not announce is read now, unless the read has to wait until the peer takes
        // bytes.
        while byteStream.hasPendingInput, phase != .closed, readingPausedSince == nil, !isReadBlockedByWrite, !isReadDue
        {
            readStep()
        }
    }

    /// Waits for a turn in which this connection may read, or go on with the input that it has.
    private func waitToRead() {
        guard !isReadDue else { return }
        isReadDue = true
        pauses.begin(at: .now)
        share.waitToRead(self, line: line)
    }

    /// The turn that `waitToRead` waited for.
    func readInTurn() {
        isReadDue = false
        guard phase != .closed else { return }
        let now = Instant.now
        pauses.end(at: now)
        keepalive.postpone(to: now)
        if isBehind {
            isBehind = false
            decode(now: now)
            // One burst must not keep a buffer for as long as the connection is used.
            if input.isEmpty { input = ByteBuffer() }
            account()
            if byteStream.hasPendingInput, readingPausedSince == nil { readable() }
        } else if watch?.isReading == true, mayReadNow {
            read()
        }
        if phase == .peerClosed { closeIfNothingLeft() }
        // Its limits did not count while it waited.
        if phase != .closed { armTimer(now: .now) }
    }

    private func readStep() {
        guard input.isEmpty else {
            // The rest of a frame.
            if holdsTooMuch || !hasRoomForInput {
                awaitsMemory = true
                return pauseReading()
            }
            if isFull { return pauseReading() }
            readOnce()
            // The next frame begins in the loop's buffer.
            input.releaseIfIdle()
            return account()
        }
        if mustWaitForLine {
            awaitsMemory = true
            return pauseReading()
        }
        swap(&input, &share.buffer)
        isReadingIntoLoopBuffer = true
        readOnce()
        isReadingIntoLoopBuffer = false
        if input.isEmpty {
            swap(&input, &share.buffer)
        } else {
            var rest = ByteBuffer()
            rest.append(contentsOf: input.readable)
            input.consume(input.readableByteCount)
            swap(&input, &share.buffer)
            input = rest
        }
        account()
    }

    /// Appends to `input`. It is the loop's buffer, or it holds the beginning of a frame and grows only by the bytes
    /// that came.
    private func readOnce() {
        let byteCount = readByteCount
        let buffer = isReadingIntoLoopBuffer ? input.reserve(byteCount) : share.buffer.reserve(byteCount)
        let opens: Instant? = stage == .open ? nil : .now
        let result = byteStream.read(into: buffer, byteCount: byteCount)
        let now = Instant.now
        if let opens { share.noteHandshake(from: opens, to: now, line: line) }
        share.noteRead(at: now)
        noteStage()
        noteHeldByStream(after: result, at: now)
        switch result {
        case .bytes(0): peerEnded()
        case .bytes(let count):
            metrics.bytesReceived.add(UInt64(count))
            if phase == .lingering || phase == .closing { return }
            if isReadingIntoLoopBuffer {
                input.commit(count)
            } else {
                input.append(contentsOf: UnsafeRawBufferPointer(start: buffer, count: count))
            }
            if !hasSeenFirstByte, !chooseSession(now: now) { return refuseProtocol() }
            keepalive.heard(at: now, lastReadAt: lastReadAt)
            lastReadAt = now
            decode(now: now)
        case .wouldBlock: break
        case .wouldBlockWriting: blockReadByWrite()
        case .refused: lingerAfterRefusal()
        case .failed: closeNow()
        }
    }

    private func chooseSession(now: Instant) -> Bool {
        hasSeenFirstByte = true
        let firstByte = input.readable.first ?? 0
        guard let chosen = protocols.session(firstByte: firstByte, now: now) else {
            owner.refused(self, firstByte: firstByte)
            return false
        }
        session = chosen
        form = CallForm(protocolName: chosen.name, isEncrypted: byteStream.isEncrypted)
        if isAuthenticated { chosen.authenticated(output: &output) }
        return true
    }

    /// Takes frames until the input is used up, the output is too full, the time is over, or the connection ends.
    func decode(now: Instant) {
        isDecoding = true
        dispatcher.batchBegins(on: self)
        defer {
            dispatcher.batchEnded(on: self)
            // Otherwise each connection that waits for its next turn would keep a message that it has used: up to 4 MiB
            // of an unpacked one, which nothing counts.
            session.releaseHandedOut()
            isDecoding = false
            if !phase.isServing { input = ByteBuffer() }
        }
        let end = now.advanced(by: Self.decodingMax)
        var looks = DecodingLooks(inputByteCount: input.readableByteCount, outputByteCount: output.byteCount)
        var looked = now
        while phase.isServing {
            account()
            let isFull = isFull
            if isFull, mustPause {
                pauseReading()
                break
            }
            let event = session.next(in: &input, output: &output, now: now, mayBegin: !isFull)
            perform(event)
            if case .needMore = event { break }
            let isLookDue = looks.isDue(inputByteCount: input.readableByteCount, outputByteCount: output.byteCount)
            guard isLookDue || session.wasLong else { continue }
            looked = .now
            if looked >= end {
                isBehind = true
                waitToRead()
                break
            }
        }
        let taken = looked.nanoseconds(since: now)
        if taken >= LoopShare.readChargedMin { share.noteDecoding(nanoseconds: taken, line: line) }
        pauses.note(frameBegun: session.partialSince)
        if phase != .closed { armTimer(now: now) }
    }

    /// Whether a full connection stops reading. A session that `readsWhileFull` is still read from, but not while its
    /// output waits for the socket, nor while memory is short and reading would not free any.
    private var mustPause: Bool {
        guard session.readsWhileFull else { return true }
        return output.byteCount > unreadOutputMax || readingFreesNothing
    }

    /// Whether memory is short, and nothing that the client could send would free any.
    private var readingFreesNothing: Bool { session.pendingByteCount == 0 && holdsTooMuch }

    /// Whether a connection that was full may begin calls again, or at least be read from: where the session
    /// `readsWhileFull`, only what the client sends may make it less full.
    private var mayGoOn: Bool {
        if !isAbove(2) { return true }
        guard readingPausedSince != nil, session.readsWhileFull else { return false }
        return output.byteCount <= unreadOutputMax / 2 && !readingFreesNothing
    }

    /// The peer does not read. The server does not read from it either, until the peer has taken half of what waits.
    private func pauseReading() {
        let now = Instant.now
        if readingPausedSince == nil { readingPausedSince = now }
        pauses.begin(at: now)
        keepalive.postpone(to: now)
        watch?.setReading(false)
        armTimer(now: now)
    }

    /// Whether more is waiting than the client may leave waiting.
    private var isFull: Bool { isAbove(1) }

    /// Whether calls that wait in the session may wait for memory alone, which other connections have to give back. No
    /// event tells that, and no input may come either, because the client may be waiting for these calls. If there is
    /// room already, memory was given back after the connection was found full.
    var callsMayAwaitMemory: Bool {
        !isReadDue && session.hasWaitingCalls && (share.memory.pressure >= .scarce || !isAbove(2))
    }

    func resumeReadingIfDrained() {
        guard readingPausedSince != nil || session.hasWaitingCalls, !isDecoding, phase.isServing else { return }
        account()
        guard mayGoOn, !awaitsMemory || !holdsTooMuch && hasRoomForInput && !mustWaitForLine else { return }
        awaitsMemory = false
        if readingPausedSince != nil {
            readingPausedSince = nil
            watch?.setReading(phase == .open && !isReadBlockedByWrite)
        }
        // The connection waits for its turn instead of reading now. Otherwise a connection whose output is sent in each
        // turn would read twice in each turn.
        isBehind = true
        waitToRead()
    }

    /// Whether `input` may grow by the bytes of one read. A full buffer becomes twice as large.
    private var hasRoomForInput: Bool {
        guard input.readableByteCount + readByteCount > input.capacity else { return true }
        return share.memory.hasRoom(for: max(input.capacity, readByteCount))
    }

    /// The most that one read takes.
    private var readByteCount: Int { share.readByteCount(ofMany: holdingMax != nil) }

    /// Whether the connection holds more than it may while memory is short.
    private var holdsTooMuch: Bool { holdingMax.map { countedByteCount - streamByteCount > $0 } ?? false }

    /// Whether more is waiting than the limits divided by `part`. The input itself does not count: decoding makes it
    /// less, and reading makes less of what the stream holds.
    @inline(__always)
    private func isAbove(_ part: Int) -> Bool {
        if pagesWaiting > 0, pagesWaiting >= max(1, bounds.pages / part) { return true }
        if borrowedMemory._withUnsafeGuaranteedRef({ $0.pressure }) >= .scarce, let most = holdingMax,
            countedByteCount - inputByteCount - streamByteCount > most / part
        {
            return true
        }
        let waiting = inboxByteCount + requestByteCount
        let unread = output.byteCount + (session.holdsAnswers ? session.pendingByteCount : 0)
        return isAuthenticated
            ? unread > bounds.unreadOutput / part || waiting > bounds.requests / part
            : unread + waiting > bounds.unauthenticated / part
    }

    /// A peer that only stopped sending still gets its answers. If the peer is gone, the next write fails.
    private func peerEnded() {
        switch phase {
        case .open:
            phase = .peerClosed
            watch?.setReading(false)
            for (stream, call) in calls where call.kind != .unary { cancel(stream: stream) }
            closeIfNothingLeft()
        // What is left to be sent is sent; then the end is read once more.
        case .closing: watch?.setReading(false)
        case .peerClosed, .lingering: closeNow()
        case .closed: break
        }
    }

    /// Performs an event of the session. Output that the session appended is sent at the end of the turn.
    func perform(_ event: SessionEvent) {
        if !output.isEmpty { markDirty() }
        switch event {
        case .none, .needMore: break
        case .authenticate(let authorization): dispatcher.authenticate(authorization, on: self)
        case .present(let authorization): dispatcher.present(authorization, on: self)
        case .begin(let stream, let kind):
            dispatcher.handle(session.request, stream: stream, kind: kind, on: self)
        case .page(let stream, let path, let authorization):
            answer(stream: stream, page: dispatcher.page(path, authorization: authorization, on: self))
        case .message(let stream, let payload, let isLast): deliver(payload, isLast: isLast, to: stream)
        case .remoteClosed(let stream): deliver(nil, isLast: true, to: stream)
        case .cancel(let stream): cancel(stream: stream)
        case .windowOpened(0): wakeSenders()
        case .windowOpened(let stream): calls[stream]?.wakeSender()
        case .echo: finishDrain()
        case .probeAnswered: lastReadAt = keepalive.lastTraffic
        case .close: beginClosing()
        }
    }

    /// Ends the connection for a reason that it noticed by itself.
    func endSession(_ reason: CloseReason) { perform(session.end(reason, output: &output)) }
}
