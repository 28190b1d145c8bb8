public import Base
import Wire

extension Connection {
    /// The memory of a call in flight beside its request: its task and its place in the tables. Measured: 2 to 4 KiB.
    private static let callByteCount = 4 * 1024
    /// The calls for which a silent connection keeps a table.
    static let tableCapacityKept = 16

    /// Updates the counted memory of this connection. Called whenever a turn may have changed it; costs a few additions
    /// if nothing changed. A closed connection counts until its last call has ended.
    func account() {
        let held = phase == .closed && calls.isEmpty ? 0 : heldByteCount
        guard held != countedByteCount else { return }
        let change = held - countedByteCount
        countedByteCount = held
        let isHolder = held > limits.connectionMemoryShare / 4
        if isHolder != self.isHolder {
            self.isHolder = isHolder
            share.setHolder(self, isHolder)
        }
        share.add(change)
        if isHolder || lineMemory != nil || pressure >= .scarce { countForLine() }
    }

    @inline(__always)
    private var pressure: ConnectionMemory.Pressure { borrowedMemory._withUnsafeGuaranteedRef { $0.pressure } }

    /// Updates the memory that is counted for the connection's line: all that it holds, if that is much or memory is
    /// short.
    ///
    /// All loops share the lines. So while there is enough memory, the count changes in steps, and the connection stays
    /// in its line when it holds little again: otherwise each burst of requests would take the lock of the lines twice.
    private func countForLine() {
        let isShort = pressure >= .scarce
        let counted = isHolder || isShort ? countedByteCount : 0
        let change = counted - lineByteCount
        guard abs(change) > (isShort || counted == 0 ? 0 : limits.connectionMemoryShare / 4) else { return }
        enterLine().add(change)
        lineByteCount += change
    }

    private func enterLine() -> LineMemory {
        if let lineMemory { return lineMemory }
        let memory = share.memory.enter(line)
        lineMemory = memory
        return memory
    }

    /// To be called before the connection gets another line.
    func leaveLine() {
        guard let memory = lineMemory.take() else { return }
        memory.add(-lineByteCount)
        lineByteCount = 0
        share.memory.leave(line)
    }

    /// The memory that this connection may hold before it is not read from. Nil while there is enough for all, and if
    /// its line holds no more than is free.
    var holdingMax: Int? {
        guard let most = share.memory.holdingMax, isOfHeavyLine else { return nil }
        return most
    }

    /// Whether no further request is read from the connection, however little it holds: memory is nearly used up, and
    /// its line holds more than is free. Otherwise a thousand connections would fill the rest, each with one request
    /// that waits. A connection is read from all the same if that may free answers, or messages of streams, which wait
    /// for its client's windows.
    var mustWaitForLine: Bool {
        guard pressure == .exhausted, phase == .open, stage == .open else { return false }
        return session.pendingByteCount + sendingByteCount == 0
            && enterLine().byteCount > share.memory.freeByteCount
    }

    /// The memory of the input, if it is the connection's own.
    var inputByteCount: Int { isReadingIntoLoopBuffer ? 0 : input.capacity }

    private var heldByteCount: Int {
        inputByteCount + output.capacity + inboxByteCount + requestByteCount + takenByteCount + streamByteCount
            + session.heldByteCount + calls.count * Self.callByteCount
    }

    /// Notes the memory that the stream holds for a part of a TLS record. To be called after each read.
    func noteHeldByStream(after result: ByteStreamResult, at now: Instant) {
        let byteCount = byteStream.heldByteCount
        guard byteCount > 0 || streamByteCount > 0 else { return }
        // Bytes that were read are of records that came whole.
        if case .bytes = result { streamHeldSince = nil }
        streamHeldSince = byteCount > 0 ? streamHeldSince ?? now : nil
        streamByteCount = byteCount
    }

    /// Gives back the memory of the last burst. Nothing counts the tables, which do not become smaller by themselves:
    /// that of 256 calls has some 50 KiB.
    func releaseIdleMemory() {
        // The last call may end while its handler still looks at its request.
        if !isDecoding { input.releaseIfIdle() }
        output.releaseIfIdle()
        session.releaseIdleMemory()
        guard calls.capacity > Self.tableCapacityKept, calls.count <= calls.capacity / 8 else { return }
        var few: [UInt32: ActiveCall] = [:]
        for (stream, call) in calls { few[stream] = call }
        calls = few
    }

    /// Frees the memory of the closed connection, because nobody will read or send it. Calls that still run keep their
    /// requests until they notice. This memory still counts, in the connection's line too: otherwise a client could
    /// connect again and again, and each time leave calls behind that nothing bounds.
    func releaseMemory() {
        output = OutputQueue()
        if !isDecoding { input = ByteBuffer() }
        streamByteCount = 0
        account()
        leaveLineIfGone()
    }

    /// To be called when a closed connection, or a call of a closed connection, has ended.
    func leaveLineIfGone() {
        if phase == .closed, calls.isEmpty { leaveLine() }
    }

    /// The memory that this connection holds and for how long, as `MemoryRelief` asks. Nil for a connection that does
    /// not keep the server waiting.
    func holding(now: Instant) -> MemoryHolding? {
        guard phase != .closed else { return nil }
        // The start of the longest wait that the connection causes.
        var since = Instant.distantFuture
        if output.isBlocked { since = min(since, lastWriteProgressAt) }
        if let partial = session.partialSince { since = min(since, partial) }
        if let held = session.heldSince { since = min(since, held) }
        if let held = streamHeldSince { since = min(since, held) }
        if let paused = readingPausedSince, inboxByteCount + requestByteCount + input.readableByteCount > 0 {
            since = min(since, paused)
        }
        // Connections without a credential give way first, even if their wait has only just begun.
        let patience = isAuthenticated ? limits.unreadPatience : .zero
        guard since != .distantFuture, since.advanced(by: patience) <= now else { return nil }
        return MemoryHolding(
            byteCount: countedByteCount, waitNanoseconds: now.nanoseconds(since: since), isStranger: !isAuthenticated,
            isOfHeavyLine: isOfHeavyLine)
    }

    private var isOfHeavyLine: Bool { lineMemory.map { $0.byteCount > share.memory.freeByteCount } ?? false }

    /// Ends the connection because of the memory it holds. Sends what the socket takes at once.
    func giveUpMemory() {
        guard phase != .closed else { return }
        metrics.connectionsClosedForMemory.add()
        if phase.isServing { endSession(.memoryNeeded) }
        guard phase != .closed else { return }
        flushAtEndOfTurn()
        closeNow()
    }

    /// Counts a call that is about to wait for `pageTurn`. The call's task would count too late: it may begin after the
    /// rest of a read was decoded, and as many pages would wait as fit into one read.
    public func awaitsPage() {
        pagesWaiting += 1
        metrics.pagesWaiting.add(1)
    }

    /// Returns when this call may make a page of a list. Three things must be true: the client has taken the answers
    /// before it, no other page is made in this turn of the loop, and there is memory for the page. Called once for
    /// each `awaitsPage`.
    ///
    /// Throws RESOURCE_EXHAUSTED SERVER_OVERLOADED and `CancellationError`.
    public func pageTurn(stream: UInt32, line: Text) async throws {
        defer {
            pagesWaiting -= 1
            metrics.pagesWaiting.add(-1)
        }
        while true {
            try checkPage(stream: stream)
            guard output.isEmpty, !session.holdsAnswers, !isInPageLine else {
                try await waitToSend(stream: stream)
                continue
            }
            if share.takePageTurn() { return }
            try await standInPageLine(line)
            // Short answers that were added meanwhile do not matter.
            try checkPage(stream: stream)
            if output.byteCount <= limits.connectionMemoryShare { return }
        }
    }

    private func standInPageLine(_ line: Text) async throws {
        isInPageLine = true
        defer {
            isInPageLine = false
            // Lets the connection's next call go on, even if this one makes no page.
            wakeSenders()
        }
        try await share.pageTurn(line: line)
    }

    /// Returns in a turn of the loop in which nothing else takes long. For a piece of work that takes as long as a
    /// page. A connection has one place in its line for such work, beside the place for its pages. So a connection with
    /// many streams gets no more turns than a connection with one. Throws `CancellationError`.
    public func workTurn(line: Text) async throws {
        if let before = workTurns.take() { try? await before.value() }
        defer { workTurns.pass() }
        try Task.checkCancellation()
        if !share.takePageTurn() { try await share.pageTurn(line: line) }
    }

    private func checkPage(stream: UInt32) throws {
        try Task.checkCancellation()
        guard phase != .closed, session.wantsAnswer(stream: stream) else { throw CancellationError() }
        let wouldWait = share.memory.pressure >= .tight && (output.isBlocked || session.holdsAnswers)
        guard !wouldWait, share.memory.hasRoomForPage else {
            metrics.pagesRefused.add()
            throw Self.memoryNeeded
        }
    }

    private static let memoryNeeded = Failure(
        .serverOverloaded, "Too many answers wait for clients to take them; try again.",
        retryAfter: .seconds(1))
}
