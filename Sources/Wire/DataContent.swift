/// The content of a DATA frame, by its flags and length.
///
/// In ttrpc's specification the last message carries `remote closed`, but ttrpc's code wants that frame to be empty.
/// Both forms are read. An empty frame with `remote closed` holds no message; an empty frame without flags holds an
/// empty message.
struct DataContent {
    let hasMessage: Bool
    let isLast: Bool

    /// Nil for flags DATA does not have, and for `no data` with data.
    init?(_ header: FrameHeader) {
        guard header.flags.isSubset(of: [.remoteClosed, .noData]) else { return nil }
        let isEmpty = header.payloadByteCount == 0
        if header.flags.contains(.noData), !isEmpty { return nil }
        isLast = header.flags.contains(.remoteClosed)
        hasMessage = !isEmpty || header.flags.isEmpty
    }
}
