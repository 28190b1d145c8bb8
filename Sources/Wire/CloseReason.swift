public import Messages

/// The reason for a connection's end, as GOAWAY tells it and the log records it.
public enum CloseReason: Equatable, Sendable, CaseIterable {
    // The peer broke the protocol.
    case helloNotFirst
    case malformedHello
    case extensionWithoutHello
    case malformedControlFrame
    case streamInUse
    case frameForOtherSide
    case unknownCriticalFrame
    case windowOverflow

    // The peer went past a limit.
    case frameAboveHardCap
    case controlFrameTooLarge
    case tooManyCancels
    case tooManyPings
    case windowExceeded
    case headersTooLarge
    case tooManyIdleFrames

    // The peer was too slow. The connection, which has the timers, tells the state machine.
    case frameTimeout
    case firstRequestTimeout
    case writeTimeout
    case idleTimeout
    case credentialMissing

    // Another connection needed the place, or others the memory.
    case displaced
    case memoryNeeded

    // In good order.
    case shutdown
    case peerLeft

    public var code: WireCode {
        switch self {
        case .helloNotFirst, .malformedHello, .extensionWithoutHello, .malformedControlFrame, .streamInUse,
            .frameForOtherSide, .unknownCriticalFrame, .windowOverflow:
            .protocolError
        case .frameAboveHardCap, .controlFrameTooLarge, .tooManyCancels, .tooManyPings, .windowExceeded,
            .headersTooLarge, .tooManyIdleFrames:
            .limitExceeded
        case .frameTimeout, .firstRequestTimeout, .writeTimeout, .idleTimeout, .credentialMissing: .timeout
        case .displaced, .memoryNeeded: .limitExceeded
        case .shutdown, .peerLeft: .shutdown
        }
    }

    public var text: String {
        switch self {
        case .helloNotFirst: "HELLO must be the first frame, and only that."
        case .malformedHello:
            "HELLO is malformed, its texts are too long, or it asks for frames below 16 KiB or a window above 2^31 - 1."
        case .extensionWithoutHello: "Frame types from 0x10 on need a HELLO first."
        case .malformedControlFrame: "The payload, flags or stream id of a control frame is wrong."
        case .streamInUse: "A stream id that is in flight was used again."
        case .frameForOtherSide: "This frame type is sent by the other side only."
        case .unknownCriticalFrame: "Unknown frame type from 0x80 on."
        case .windowOverflow: "A stream's window went above 2^31 - 1."
        case .frameAboveHardCap: "A frame above 16 MiB - 1."
        case .controlFrameTooLarge: "A control frame above the frame limit."
        case .tooManyCancels: "Too many requests cancelled."
        case .tooManyPings: "Too many pings."
        case .windowExceeded: "More DATA than the stream's window allows."
        case .headersTooLarge: "A request's headers come in more frames or bytes than they may."
        case .tooManyIdleFrames: "Too many frames that carry nothing."
        case .frameTimeout: "A frame took too long to arrive."
        case .firstRequestTimeout: "No request arrived in time."
        case .writeTimeout: "Answers were not read in time."
        case .idleTimeout: "The connection was idle."
        case .credentialMissing: "The connection showed no credential in time; connect again."
        case .displaced: "The connection showed no credential and others needed its place; connect again."
        case .memoryNeeded: "The connection kept too much waiting for too long; connect again."
        case .shutdown: "The server stops."
        case .peerLeft: "The peer said goodbye."
        }
    }
}
