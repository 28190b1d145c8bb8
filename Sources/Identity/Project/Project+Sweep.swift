import Base
import Store

extension Project {
    /// The periodic work on expired sessions and idempotency records, unused anonymous users, retired keys and stale
    /// readers. Nothing is deleted by its age while the clock is not proven, or differs from the cluster's.
    public func sweep() async {
        checkClock()
        tenants.forgetIdle()
        await callers.uses.sweep()
        guard time.isProven, store.journalStatus?.isClockWrong != true else {
            sweepsPutOff.add()
            return
        }
        await WritePurpose.$current.withValue(.removal) {
            do {
                try await sweepOwn()
                if try await leases.hold(.sweep) { try await sweepForAll() }
            } catch {
                resources.log.error("the sweep failed", ["error": .text("\(error)")])
            }
        }
    }

    /// Few enough for one write: with a row that is due, four others may go.
    private static let rowsPerWrite = 150

    /// The work that one node of a cluster does for all. Each part decides inside its writes what is to be done, so
    /// that nothing is done twice when two nodes do the work.
    func sweepForAll() async throws {
        while try await store.sweep(now: clock.now(), limit: Self.rowsPerWrite) == Self.rowsPerWrite {}
        try await tenants.finishSomeDeletions()
        try await signingKeys.retireExpired()
        // The clock is read in the run, because the note is about all revocations up to then.
        try await store.write { [clock] in try $0.noteRevocationTime(clock.now()) }
        while try await store.write({ [now = clock.now()] in
            try $0.forgetRevocations(now: now, limit: Self.rowsPerWrite)
        }) {}
        while try await store.write({ [now = clock.now()] in try $0.forgetGuesses(now: now, limit: 500) }) {}
        try await anonymousExpiry.sweep(now: clock.now())
        try await eventUpkeep.trim(now: clock.now())
    }

    /// The work that each node does: on what it counted itself, and on its own file.
    private func sweepOwn() async throws {
        await callers.deniedCalls.sweep()
        try eventUpkeep.follow()
        _ = try store.checkReaders()
    }
}
