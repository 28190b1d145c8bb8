import Base
import PosternClient
import PosternVerifier

/// The values that the examples in PosternVerifier's doc comments take for granted.
struct ExampleValues {
    let channel: Channel
    let verifier: TokenVerifier
    let idToken: String
}
