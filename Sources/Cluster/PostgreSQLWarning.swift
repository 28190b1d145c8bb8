internal import CPostgreSQL

/// The warning, if any, that came with the result of a statement. One thread.
///
/// If somebody cancels a commit's wait for its synchronous standby, PostgreSQL commits on the primary alone and answers
/// as usual. Only a warning tells that the standby may not have the commit (PostgreSQL's syncrep.c). So a warning
/// leaves the statement's outcome open, whatever its result says.
final class PostgreSQLWarning {
    /// The first warning since the last `forget`, in one line.
    private(set) var text: String?

    /// Forgets the warning of an earlier statement.
    func forget() { text = nil }

    /// Takes in a notice of any severity.
    func note(_ notice: OpaquePointer) {
        // "V" is the severity in English, "S" is the translated one: engines before version 9.6 send only "S".
        let severity = Self.field("V", of: notice) ?? Self.field("S", of: notice) ?? ""
        guard text == nil, Self.leavesOutcomeOpen(severity: severity, file: Self.field("F", of: notice)) else { return }
        text = inOneLine(PQresultErrorField(notice, Int32(UInt8(ascii: "M"))))
    }

    /// `file`: the file of PostgreSQL's sources that the notice comes from.
    ///
    /// An engine that has to be vacuumed soon, because its numbers of transactions run out, warns at each write. These
    /// warnings say nothing about the write, and must not stop the cluster before the engine itself stops.
    static func leavesOutcomeOpen(severity: String, file: String?) -> Bool {
        severity == "WARNING" && file != "varsup.c" && file != "multixact.c"
    }

    private static func field(_ code: Unicode.Scalar, of notice: OpaquePointer) -> String? {
        PQresultErrorField(notice, Int32(code.value)).map { String(cString: $0) }
    }
}
