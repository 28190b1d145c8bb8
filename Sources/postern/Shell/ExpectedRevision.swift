/// Makes a change fail if somebody else has changed the settings meanwhile.
let ifRevisionFlag = Flag("if-revision", "N", "only while the settings have this revision; 0: never changed")

extension Arguments {
    /// The field `expected_revision` for the revision in --if-revision; nil without the flag.
    func expectedRevision() throws(CommandError) -> Int64? {
        guard let revision = try integer("if-revision", in: 0...Int64.max) else { return nil }
        return ExpectedRevision.field(of: revision)
    }
}

/// The field `expected_revision`, in which 0 stands for any revision.
enum ExpectedRevision {
    static func field(of revision: Int64) -> Int64 { revision == 0 ? -1 : revision }
}
