import Base

/// The exit status of the process; scripts switch on it.
enum ExitCode: Int32, CaseIterable {
    case ok = 0
    case general = 1
    case usage = 2
    case notFound = 3
    case notAllowed = 4
    case conflict = 5
    case unavailable = 6
    case partial = 7
    case declined = 8
    /// sysexits.h: EX_DATAERR, as posternd says it.
    case damaged = 65
    case interrupted = 130
    case terminated = 143

    init(_ code: StatusCode) {
        switch code {
        case .ok: self = .ok
        case .notFound: self = .notFound
        case .unauthenticated, .permissionDenied: self = .notAllowed
        case .alreadyExists, .failedPrecondition, .aborted: self = .conflict
        case .unavailable, .deadlineExceeded, .resourceExhausted: self = .unavailable
        case .cancelled, .unknown, .invalidArgument, .outOfRange, .unimplemented, .internal, .dataLoss: self = .general
        }
    }

    var meaning: String {
        switch self {
        case .ok: "done"
        case .general: "any other failure; the server refused the values that were given"
        case .usage: "the command line is wrong; nothing was sent"
        case .notFound: "what was named does not exist"
        case .notAllowed: "no valid credential, or one that may not do this"
        case .conflict: "exists already, or its state does not allow this"
        case .unavailable:
            "the server cannot be reached, is busy or did not answer in time: look whether the change was made, then "
                + "try again"
        case .partial: "some rows were rejected, or some users not found or not changed"
        case .declined: "a question was answered with no"
        case .damaged: "a store or a backup is damaged, or an export of events is not what the server signed"
        case .interrupted: "interrupted (Ctrl-C); standard error says if a change may have been made"
        case .terminated: "ended by SIGTERM, as with 130"
        }
    }
}
