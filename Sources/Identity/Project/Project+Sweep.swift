import Base
import Store

extension Project {
    /// What is done now and then: expired sessions and idempotency records, unused anonymous users, retired keys, stale
    /// readers. Nothing is deleted by its age while the clock is not proven.
    public func sweep() async {
        checkClock()
        tenants.forgetIdle()
        await callers.uses.sweep()
        guard time.isProven else {
            sweepsPutOff.add()
            return
        }
        await WritePurpose.$current.withValue(.removal) { await sweepNow() }
    }

    private func sweepNow() async {
        do {
            while try await store.sweep(now: clock.now(), limit: 500) == 500 {}
            try await tenants.finishSomeDeletions()
            try await signingKeys.retireExpired()
            try await store.write { [now = clock.now()] in try $0.noteRevocationTime(now) }
            while try await store.write({ [now = clock.now()] in try $0.forgetRevocations(now: now, limit: 500) }) {}
            while try await store.write({ [now = clock.now()] in try $0.forgetGuesses(now: now, limit: 500) }) {}
            try await anonymousExpiry.sweep(now: clock.now())
            await callers.deniedCalls.sweep()
            try await eventUpkeep.sweep(now: clock.now())
            _ = try store.checkReaders()
        } catch {
            resources.log.error("the sweep failed", ["error": .text("\(error)")])
        }
    }
}
