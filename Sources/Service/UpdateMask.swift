import Base
import Messages

/// The fields an update means.
struct UpdateMask {
    private let paths: Set<Text>

    /// INVALID_UPDATE_MASK when empty, or for a path that is unknown or there twice.
    init(_ mask: ProtobufFieldMask?, allowed: Set<Text>) throws(Failure) {
        let paths = mask?.paths ?? []
        guard !paths.isEmpty else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "must name the fields to change")
        }
        self.paths = Set(paths)
        guard self.paths.count == paths.count else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "names a field twice")
        }
        if let unknown = self.paths.first(where: { !allowed.contains($0) }) {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "\"\(unknown)\" cannot be changed here")
        }
    }

    func contains(_ path: Text) -> Bool { paths.contains(path) }
}
