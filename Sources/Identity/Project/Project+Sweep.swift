import Base
import Store

extension Project {
    /// The periodic work on expired sessions and idempotency records, unused anonymous users, signing keys and stale
    /// readers. Nothing is deleted by its age while the clock is not proven, or differs from the cluster's.
    public func sweep() async {
        checkClock()
        tenants.forgetIdle()
        await callers.uses.sweep()
        await attempt { try await mendStore() }
        await attempt { try await countLostUsage() }
        await attempt { try await rotateSigningKeys() }
        // Without this, the admins of a tenant would not see its oldest keys. It deletes nothing.
        await WritePurpose.$current.withValue(.removal) { await attempt { try await callers.indexOldKeys() } }
        await lookAfterStore()
        guard resources.mayDeleteByAge else {
            sweepsPutOff.add()
            return
        }
        await WritePurpose.$current.withValue(.removal) {
            // The work that each node does for the calls that it counted itself.
            await callers.deniedCalls.sweep()
            await attempt { if try await leases.hold(.sweep) { try await sweepForAll() } }
        }
    }

    /// What each node does for its own store file. It deletes nothing, so it goes on while the clock is not proven.
    private func lookAfterStore() async {
        await attempt { try eventUpkeep.follow() }
        await attempt { _ = try store.checkReaders() }
        // The store tells the log and /healthz itself that its file is gone.
        try? await store.checkFile()
    }

    /// Called in the place of `sweep` while a sweep still runs: no other node takes the lease meanwhile.
    public func goOnSweeping() async { await attempt { _ = try await leases.hold(.sweep) } }

    private func attempt(_ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            resources.log.error("the sweep failed", ["error": .text("\(error)")])
        }
    }

    /// Makes the next signing keys. This deletes nothing, so it goes on while the machine's clock is behind, or ahead
    /// and not believed. It waits while the time itself is that of a clock which has not proved itself.
    private func rotateSigningKeys() async throws {
        guard signingKeys.isNextKeyDue, time.mark != nil, !store.isClockAway else { return }
        try await WritePurpose.$current.withValue(.removal) {
            if try await leases.hold(.sweep) { try await signingKeys.rotateDue() }
        }
    }

    private func mendStore() async throws {
        let mended = try await store.mend()
        guard !mended.isEmpty else { return }
        resources.log.warning(
            "a damaged record left something in the store; it was deleted, or is counted anew",
            ["pieces": .integer(Int64(mended.pieceCount)), "tenants": .integer(Int64(mended.tenantCount))])
    }

    private func countLostUsage() async throws {
        for tenantID in try await store.countUnknownUsage() {
            resources.log.warning(
                "the sum of a tenant's space was lost or damaged; the tenant's rows were counted anew",
                ["tenant": .text(tenantID.string)])
        }
    }

    /// How many rows that are due one write deletes at most. With each of them, up to four other rows are deleted.
    private static let rowsPerWrite = 150

    /// The work that one node of a cluster does for all. Each part decides inside its writes what is to be done, so
    /// that nothing is done twice when two nodes do the work.
    ///
    /// Every part is done, even if one before it throws: a damaged record must not stop the others for good. Throws the
    /// first error.
    func sweepForAll() async throws {
        let parts: [() async throws -> Void] = [
            { try await self.expireRecords() },
            { try await self.tenants.finishSomeDeletions() },
            { try await self.tenants.orphanedCredentials.sweep() },
            { try await self.signingKeys.retireExpired() },
            { try await RevocationUpkeep(resources: self.resources).sweep() },
            { try await self.forgetGuesses() },
            { try await self.anonymousExpiry.sweep(now: self.clock.now()) },
            { try await self.eventUpkeep.trim(now: self.clock.now()) },
        ]
        var failure: (any Error)?
        for part in parts {
            do { try await part() } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
    }

    private func expireRecords() async throws {
        let (log, damaged) = (resources.log, resources.damagedRecords)
        var isMore = true
        while isMore {
            let slice = try await store.sweep(now: clock.now(), limit: Self.rowsPerWrite) { error in
                log.error(
                    "a record that has expired is damaged and stays; posternd --verify-store tells more",
                    ["error": .text("\(error)")])
            } onPassedRow: { table in
                damaged.passOver(rowOf: table)
            }
            isMore = slice.isMore
        }
    }

    private func forgetGuesses() async throws {
        while try await store.write({ [now = clock.now()] in try $0.forgetGuesses(now: now, limit: 500) }) {}
    }
}
