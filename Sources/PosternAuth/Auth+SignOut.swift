import Base
import Synchronization

extension Auth {
    /// The longest time that signing out waits for the server to end the session.
    private static let sessionEndWaitMax = Duration.seconds(2)

    /// Signs the current user out: at once for this `Auth`, and durably in the storage when this returns. Without a
    /// current user nothing happens.
    ///
    /// The `User` object still works for code that holds it. The server's session ends when the last reference to the
    /// object is dropped. If `signOut` dropped the last reference, it waits until the server has ended the session, for
    /// two seconds at most.
    ///
    /// Throws keychainError when the storage cannot be written: the next run of the application would find the user
    /// signed in. Call `signOut` again to try again.
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

    /// A user who is not the current user any more. The object is gone if nobody else holds it.
    private struct Leaving {
        weak let user: User?
        let sessionEnd: SessionEnd
    }

    // Not inlined: the caller must not hold the user.
    @inline(never)
    private func forgetCurrentUser(_ written: Promise<StorageWriter.Outcome>) -> Leaving? {
        guard let user = currentUser else {
            retryRemoval(written)
            return nil
        }
        forget(user, nil, written: written)
        return Leaving(user: user, sessionEnd: user.sessionEnd)
    }

    /// Makes a user no longer the current user, because the application or the server wants it.
    func forget(_ user: User, _ error: AuthError?, written: Promise<StorageWriter.Outcome>? = nil) {
        change { state in
            guard state.currentUser === user else {
                written?.succeed(.success(()))
                return nil
            }
            state.currentUser = nil
            user.removeKeeper()
            writer.enqueue(.nothing, outcome: written)
            return IDTokenEvent(user: nil, change: .signedOut(error))
        }
    }

    /// Tries again to remove the record, if an earlier sign-out could not remove it.
    private func retryRemoval(_ written: Promise<StorageWriter.Outcome>) {
        state.withLock { state in
            guard state.currentUser == nil, writer.owesRemoval else { return written.succeed(.success(())) }
            writer.enqueue(.nothing, outcome: written)
        }
        writer.begin()
    }
}
