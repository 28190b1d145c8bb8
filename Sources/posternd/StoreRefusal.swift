/// The store is damaged, gone or rolled back. Another start does not help, so a supervisor should not try.
struct StoreRefusal: Error, CustomStringConvertible {
    /// sysexits.h: EX_DATAERR.
    static let exitStatus: Int32 = 65
    var description: String
}
