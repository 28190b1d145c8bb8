import Base

extension Failure {
    /// Refuses a change of settings that was decided over another revision than the present one. `expected` is the
    /// request's `expected_revision`: 0 for any revision, and -1 for revision 0, which settings have that nobody has
    /// changed yet. REVISION_MISMATCH.
    static func requireRevision(_ expected: Int64, isStill present: Int64) throws(Failure) {
        guard expected != 0, expected != (present == 0 ? -1 : present) else { return }
        throw Failure(
            .revisionMismatch, "The settings have revision \(present) now; read them again.",
            metadata: [Entry("revision", "\(present)")])
    }
}
