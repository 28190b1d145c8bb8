/// How a stream was opened: the flags of its REQUEST.
public enum StreamKind: Equatable, Sendable, CaseIterable {
    /// No flags: one RESPONSE and nothing else.
    case unary
    /// The client sends nothing more; the server may send DATA.
    case remoteClosed
    /// The client will send DATA; so may the server.
    case remoteOpen

    /// Nil for both flags at once and for flags REQUEST does not have.
    init?(_ flags: FrameFlags) {
        switch flags {
        case []: self = .unary
        case .remoteClosed: self = .remoteClosed
        case .remoteOpen: self = .remoteOpen
        default: return nil
        }
    }

    var flags: FrameFlags {
        switch self {
        case .unary: []
        case .remoteClosed: .remoteClosed
        case .remoteOpen: .remoteOpen
        }
    }
}
