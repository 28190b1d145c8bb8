import Base
import JSON
import PosternAuth
import PosternClient

/// The values that the examples in PosternAuth's doc comments take for granted.
struct ExampleValues {
    let auth: Auth
    let user: User
    let channel: Channel
    let apiKey: Secret
    let credential: AuthCredential
    let email: String
    let password: String
    let link: String
    let idToken: String
    let accessToken: String
    let customToken: String
    let nonce: String
    /// Six digits that the user read.
    let code: String
    /// The ID of an SMS that was sent.
    let verificationID: String
    /// The resolver of a sign-in that waits for a second factor.
    let resolver: MultiFactorResolver
    /// The proof of a second factor.
    let assertion: MultiFactorAssertion
    /// A second factor's `uid`.
    let factorID: String
    let openBrowser: (String) async throws -> String
}
