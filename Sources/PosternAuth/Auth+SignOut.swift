import Base
import Synchronization

extension Auth {
    /// The longest time that signing out waits for the server to end the session.
    private static let sessionEndWaitMax = Duration.seconds(2)

    /// Signs the current user out: at once for this `Auth`, and durably in the storage when this returns. A sign-up
    /// whose answer was lost is given up, too: nobody is signed in by it later. Its session is ended as best effort.
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
        // The sign-up first: until then its user may become the current user.
        let signUp = giveUpSignUp()
        if let signUp, signUp.isOpen { Task { await self.endSession(ofSignUp: signUp) } }
        guard let user = currentUser else {
            removeRecord(hadSignUp: signUp != nil, written)
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
            user.removeKeeper(self)
            writer.enqueue(storageContent(of: state), outcome: written)
            return IDTokenEvent(user: nil, change: .signedOut(error))
        }
        handOver(user)
    }

    /// Removes the record while nobody is signed in: one that an earlier sign-out could not remove, or the note of the
    /// sign-up that was given up.
    private func removeRecord(hadSignUp: Bool, _ written: Promise<StorageWriter.Outcome>) {
        state.withLock { state in
            let mustRemove = writer.owesRemoval || hadSignUp && !writer.hasUnusableRecord
            guard state.currentUser == nil, mustRemove else { return written.succeed(.success(())) }
            writer.enqueue(storageContent(of: state), outcome: written)
        }
        writer.begin()
    }
}
