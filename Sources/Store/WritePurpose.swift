/// The purpose of a write, which decides how much of a full store it may still use.
///
/// A store that is nearly full keeps pages in reserve (`SpaceRules`). They are for writes that make room again and for
/// writes that keep strangers out: an operator deletes users, an admin revokes a user's tokens. Revoking tokens can be
/// repeated without end, deleting cannot: so the last pages are for deleting, and for what ends only once.
///
/// | purpose | example | may leave free |
/// |---|---|---|
/// | `growth` | creating a user | the whole reserve |
/// | `session` | signing in a known user, refreshing | half of the reserve |
/// | `relief` | revoking, disabling, a new password by an admin | an eighth of the reserve |
/// | `removal` | deleting, signing out, revoking a key; the sweep; an operator's new key; a restore | nothing |
///
/// A write that takes no more pages than the store had before is admitted whatever its purpose.
public enum WritePurpose: UInt8, Sendable, Comparable {
    case growth
    case session
    case relief
    case removal

    /// The purpose of all writes of the current task, unless a write names a stronger one. The router sets it from the
    /// method's rule, so that no handler can forget to.
    @TaskLocal public static var current = WritePurpose.growth

    public static func < (first: WritePurpose, second: WritePurpose) -> Bool { first.rawValue < second.rawValue }
}
