public import Base
import Reactor
import Synchronization

/// Places for the batches of imports that are decoded at the same time, and for batches that delete or change users, on
/// all loops together.
///
/// A batch of an import waits for its place undecoded: its bytes count as memory of their connection
/// (`Connection.nextMessage`). The decoded users are counted nowhere, and take many times as much memory: 500 users
/// with nothing but an identifier are three kilobytes undecoded.
///
/// The places are shared by tenants as `SharedPlaces` says. Any thread.
///
/// ```swift
/// let place = try await places.take(tenantID)
/// defer { place.leave() }
/// ```
public final class ImportPlaces: Sendable {
    private struct Waiter: Sendable {
        let tenantID: Text
        let promise = Promise<Void>()
    }

    private struct State: Sendable {
        var places: SharedPlaces
        var waiters = FairQueue<Waiter>()

        /// Frees a place. Returns those who have a place now.
        mutating func leave(_ tenantID: Text) -> [Waiter] {
            places.leave(of: tenantID)
            var next: [Waiter] = []
            while let waiter = popFirst(), places.take(waiter.tenantID) { next.append(waiter) }
            return next
        }

        private mutating func popFirst() -> Waiter? {
            let places = places
            return waiters.popFirst { waiter, _ in places.hasRoom(for: waiter.tenantID) }
        }
    }

    private let state: Mutex<State>

    init(countMax: Int) { state = Mutex(State(places: SharedPlaces(countMax: countMax))) }

    /// The batches that wait for a place.
    public var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Returns when a batch of the tenant may be decoded, or may begin. Throws `CancellationError`.
    public func take(_ tenantID: Text) async throws -> ImportPlace {
        let waiter = state.withLock { state -> Waiter? in
            // Nobody of the tenant is overtaken: while one waits, there is no room for another.
            if state.places.take(tenantID) { return nil }
            let waiter = Waiter(tenantID: tenantID)
            state.waiters.append(waiter, tenant: tenantID)
            return waiter
        }
        if let waiter { try await wait(waiter) }
        return ImportPlace(self, tenantID)
    }

    private func wait(_ waiter: Waiter) async throws {
        do {
            try await waiter.promise.cancellableValue()
        } catch {
            let isGone = state.withLock { state in
                state.waiters.remove(tenant: waiter.tenantID) { $0.promise === waiter.promise } == nil
            }
            // The place came at the same time.
            if isGone { leave(waiter.tenantID) }
            throw error
        }
    }

    fileprivate func leave(_ tenantID: Text) {
        for waiter in state.withLock({ $0.leave(tenantID) }) { waiter.promise.succeed(()) }
    }
}

/// A place that a batch has. `leave` is called once.
public struct ImportPlace: Sendable {
    private let places: ImportPlaces
    private let tenantID: Text

    fileprivate init(_ places: ImportPlaces, _ tenantID: Text) { (self.places, self.tenantID) = (places, tenantID) }

    public func leave() { places.leave(tenantID) }
}
