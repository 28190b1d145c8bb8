/// The reason why a stream or a connection ends (RFC 9113 §7).
public enum HTTP2Code: UInt32, Sendable {
    case noError = 0
    case protocolError = 1
    case internalError = 2
    case flowControlError = 3
    case refusedStream = 7
    case cancel = 8
    case enhanceYourCalm = 11
}

/// The settings that one side announces to the other (RFC 9113 §6.5.2).
public struct HTTP2Settings: Sendable {
    public var streamsMax: Int
    public var initialWindow: Int
    public var headerListByteCountMax: Int

    public init(streamsMax: Int, initialWindow: Int, headerListByteCountMax: Int) {
        self.streamsMax = streamsMax
        self.initialWindow = initialWindow
        self.headerListByteCountMax = headerListByteCountMax
    }
}
