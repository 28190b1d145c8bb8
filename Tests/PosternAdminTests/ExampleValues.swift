import Base
import Messages
import PosternAdmin
import PosternClient

/// The values that the examples in PosternAdmin's doc comments take for granted.
struct ExampleValues {
    let channel: Channel
    let project: ProjectAdmin
    let tenant: TenantAdmin
    let uid: Text
    let rows: [ImportUser]
    let spec: PasswordHashSpec
}
