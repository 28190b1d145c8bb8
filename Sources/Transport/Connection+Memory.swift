import Base
import Wire

extension Connection {
    /// The memory of a call in flight beside its request: its task and its place in the tables. Measured: 2 to 4 KiB.
    private static let callByteCount = 4 * 1024

    /// Brings what this connection counts for up to date. Called whenever a turn may have changed it; costs a few
    /// additions while nothing changed.
    func account() {
        let held = phase == .closed ? 0 : heldByteCount
        guard held != countedByteCount else { return }
        let change = held - countedByteCount
        countedByteCount = held
        let isHolder = held > limits.connectionMemoryShare / 4
        if isHolder != self.isHolder {
            self.isHolder = isHolder
            share.setHolder(self, isHolder)
        }
        share.add(change)
    }

    private var heldByteCount: Int {
        (isReadingIntoLoopBuffer ? 0 : input.capacity) + output.capacity + inboxByteCount + requestByteCount
            + session.heldByteCount + calls.count * Self.callByteCount
    }

    /// The connection is closed; nobody will read or send what it holds. Calls that still run hold on to what is
    /// theirs until they notice.
    func releaseMemory() {
        output = OutputQueue()
        if !isDecoding { input = ByteBuffer() }
        let held = countedByteCount
        countedByteCount = 0
        if isHolder { share.setHolder(self, false) }
        isHolder = false
        if held != 0 { share.add(-held) }
    }

    /// The memory that this connection holds and for how long, as `MemoryRelief` asks. Nil for a connection that does
    /// not keep the server waiting.
    func holding(now: Instant) -> MemoryHolding? {
        guard phase != .closed else { return nil }
        // Of what it keeps waiting, what waits longest.
        var since = Instant.distantFuture
        if output.isBlocked { since = min(since, lastWriteProgressAt) }
        if let partial = session.partialSince { since = min(since, partial) }
        if let held = session.heldSince { since = min(since, held) }
        if let paused = readingPausedSince, inboxByteCount + requestByteCount > 0 { since = min(since, paused) }
        // Strangers give way first, also those that have only just begun.
        let patience = isAuthenticated ? limits.unreadPatience : .zero
        guard since != .distantFuture, since.advanced(by: patience) <= now else { return nil }
        return MemoryHolding(
            byteCount: countedByteCount, waitNanoseconds: now.nanoseconds(since: since), isStranger: !isAuthenticated)
    }

    /// Ends the connection for the memory it holds. Sends what the socket takes at once.
    func giveUpMemory() {
        guard phase != .closed else { return }
        metrics.connectionsClosedForMemory.add()
        if phase == .open || phase == .peerClosed { endSession(.memoryNeeded) }
        guard phase != .closed else { return }
        flushAtEndOfTurn()
        closeNow()
    }

    /// Counts a call that is about to wait for `pageTurn`. Its task may begin after the rest of what was read: counted
    /// there, as many pages would wait as fit into one read.
    public func awaitsPage() {
        pagesWaiting += 1
        metrics.pagesWaiting.add(1)
    }

    /// Returns when this call may make a page of a list. Three things must be true: the client has taken the answers
    /// before it, no other page is made in this turn of the loop, and there is memory for the page. Called once for
    /// each `awaitsPage`.
    ///
    /// Throws RESOURCE_EXHAUSTED SERVER_OVERLOADED and `CancellationError`.
    public func pageTurn(stream: UInt32) async throws {
        defer {
            pagesWaiting -= 1
            metrics.pagesWaiting.add(-1)
        }
        while true {
            try checkPage(stream: stream)
            guard output.isEmpty, session.pendingByteCount == 0, !isInPageLine else {
                try await waitToSend(stream: stream)
                continue
            }
            if share.takePageTurn() { return }
            try await standInPageLine()
            // Short answers that were added meanwhile do not matter.
            try checkPage(stream: stream)
            if output.byteCount <= limits.connectionMemoryShare { return }
        }
    }

    private func standInPageLine() async throws {
        isInPageLine = true
        defer {
            isInPageLine = false
            // The next of this connection's calls, if this one makes no page after all.
            wakeSenders()
        }
        try await share.pageTurn()
    }

    private func checkPage(stream: UInt32) throws {
        try Task.checkCancellation()
        guard phase != .closed, session.wantsAnswer(stream: stream) else { throw CancellationError() }
        let wouldWait = share.memory.pressure >= .tight && (output.isBlocked || session.pendingByteCount > 0)
        guard !wouldWait, share.memory.hasRoomForPage else {
            metrics.pagesRefused.add()
            throw Self.memoryNeeded
        }
    }

    private static let memoryNeeded = Failure(
        .serverOverloaded, "Too many answers wait for clients to take them; try again.",
        retryAfter: .seconds(1))
}
