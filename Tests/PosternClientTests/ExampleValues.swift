import Base
import Messages
import PosternClient

/// The values that the examples in PosternClient's doc comments take for granted.
struct ExampleValues {
    let channel: Channel
    let apiKey: Secret
    let uid: Text
    let rows: [ImportUser]
    let makeConnection: @Sendable () throws(Failure) -> Int32
}
