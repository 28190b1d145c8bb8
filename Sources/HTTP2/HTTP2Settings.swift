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
