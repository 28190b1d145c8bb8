import Base
import Messages
import PosternClient
import Synchronization

// A sign-up whose answer this process, or an earlier process, did not get. With the id of the attempt the server gives
// the answer again.

extension Auth {
    /// Notes in the storage that a sign-up is under way (`attempt`), or that none is (nil). A sign-up to another tenant
    /// than the configuration's is not noted. An error of the storage is reported. A record that cannot be used stays
    /// until somebody signs in.
    func noteSignUp(_ attempt: [UInt8]?) async {
        let attempt = signsInToKeptTenant ? attempt : nil
        let written = Promise<StorageWriter.Outcome>()
        state.withLock { state in
            if writer.hasUnusableRecord {
                written.succeed(.success(()))
            } else if let user = state.currentUser {
                writer.enqueue(storageContent(of: user, signingUp: attempt), outcome: written)
            } else if let attempt {
                writer.enqueue(
                    .record(SavedState.encoded(signUpAttempt: attempt, tenantID: configured.tenantID)),
                    outcome: written)
            } else {
                writer.enqueue(.nothing, outcome: written)
            }
        }
        writer.begin()
        // Only ever succeeds.
        _ = try? await written.value()
    }

    /// Signs in the user of a sign-up whose answer an earlier process did not get. If somebody is signed in by then,
    /// the new session is ended instead. Offline, the storage keeps the attempt for the next run.
    func finishSignUp(_ attempt: [UInt8]) async {
        // The record is of this tenant, whatever `tenantID` says by now.
        let backend = configured
        let asked = backend.clock.moment()
        let found: User
        do throws(AuthError) {
            let request = TokensRefreshRequest(tenantID: backend.tenantID, refreshToken: .empty, attemptID: attempt)
            let response = try await backend.call { try await backend.tokens.refresh(request) }
            guard let pair = response.tokens else { throw .malformedAnswer("tokens") }
            let lookup = AccountsLookupRequest(tenantID: backend.tenantID, idToken: pair.idToken)
            let account = try await backend.call { try await backend.accounts.lookup(lookup) }.user
            let answer = try Answer(account, pair)
            found = User(answer.account, try TokenSet(pair, asked: asked), backend: backend)
        } catch {
            if !error.isRetryable, currentUser == nil { await noteSignUp(nil) }
            return
        }
        change { state in
            guard state.currentUser == nil else { return nil }
            found.addKeeper(self)
            state.currentUser = found
            writer.enqueue(.record(found.saved.encoded()))
            return IDTokenEvent(user: found, change: .signedIn)
        }
    }
}
