import Base
import Synchronization

extension Auth {
    /// How long signing out waits for the server to hear of it.
    private static let sessionEndWaitMax = Duration.seconds(2)

    /// Forgets the current user: at once here, and in the storage when this returns. The user object goes on working
    /// for whoever holds it; when nobody does any more, the server is told to end its session, as best as can be done:
    /// where that is now, this waits for it, two seconds at most. Without a current user nothing happens.
    ///
    /// Throws keychainError when the storage cannot be written: the next run of the application would find the user
    /// signed in. Calling it again tries again.
    public func signOut() async throws {
        let written = Promise<StorageWriter.Outcome>()
        let leaving = forgetCurrentUser(written)
        // Only ever succeeds.
        let outcome = try? await written.value()
        if let leaving, leaving.user == nil {
            await leaving.sessionEnd.wait(atMost: Self.sessionEndWaitMax, by: backend.clock)
        }
        if case .failure(let error) = outcome { throw AuthError(error) }
    }

    /// A user who is current no more, and is gone if nobody else holds it.
    private struct Leaving {
        weak let user: User?
        let sessionEnd: SessionEnd
    }

    // Not inlined: the caller must not hold the user.
    @inline(never)
    private func forgetCurrentUser(_ written: Promise<StorageWriter.Outcome>) -> Leaving? {
        guard let user = currentUser else {
            removeWhatIsOwed(written)
            return nil
        }
        forget(user, nil, written: written)
        return Leaving(user: user, sessionEnd: user.sessionEnd)
    }

    /// The end of a user's being signed in here, whoever asked for it.
    func forget(_ user: User, _ error: AuthError?, written: Promise<StorageWriter.Outcome>? = nil) {
        change { state in
            guard state.currentUser === user else {
                written?.succeed(.success(()))
                return nil
            }
            state.currentUser = nil
            user.left()
            writer.enqueue(.nothing, outcome: written)
            return IDTokenEvent(user: nil, change: .signedOut(error))
        }
    }

    /// Tries once more what an earlier sign-out could not do.
    private func removeWhatIsOwed(_ written: Promise<StorageWriter.Outcome>) {
        state.withLock { state in
            guard state.currentUser == nil, writer.owesRemoval else { return written.succeed(.success(())) }
            writer.enqueue(.nothing, outcome: written)
        }
        writer.begin()
    }
}

/// The end of a user's session at the server, for whoever waits for it: it outlives the user.
final class SessionEnd: Sendable {
    private struct State {
        var isTried = false
        var waiters: [Promise<Void>] = []
    }

    private let state = Mutex(State())

    /// The server was told, or cannot be, or need not be.
    func wasTried() {
        let waiters = state.withLock { state in
            state.isTried = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// Returns sooner when the task is cancelled.
    func wait(atMost bound: Duration, by clock: AuthClock) async {
        let waiter = Promise<Void>()
        let isTried = state.withLock { state in
            if !state.isTried { state.waiters.append(waiter) }
            return state.isTried
        }
        guard !isTried else { return }
        let timer = Task {
            if (try? await clock.sleep(bound)) != nil { waiter.succeed(()) }
        }
        _ = try? await waiter.cancellableValue()
        timer.cancel()
    }
}
