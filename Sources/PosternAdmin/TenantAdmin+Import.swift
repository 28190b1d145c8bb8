public import Base
public import Messages
public import PosternClient

extension TenantAdmin {
    /// Brings users in with the password hashes they have, in batches, of which up to four are on their way at once.
    ///
    /// `spec`: how the passwords were hashed; needed only if there are any. `progress` gets the report as it stands
    /// after each batch. Rows are refused one by one (`rejections`); what is thrown ends the import, and its metadata
    /// `checkpoint` says how many rows are settled.
    ///
    /// With `.skip` and `.replace`, once rows are settled, a lost connection is made again and the unsettled rows are
    /// sent again, up to the channel's `retry.attemptsMax` losses in a row. With `.fail`, where a row that got in
    /// before would be refused as its own duplicate, the loss is thrown: go on behind the checkpoint with `.skip`.
    /// Throws INVALID_HASH_SPEC.
    public func importUsers(
        _ users: some Sequence<ImportUser>, spec: PasswordHashSpec? = nil, onConflict: ImportConflict = .fail,
        options: CallOptions = .init(), progress: (ImportReport) -> Void = { _ in }
    ) async throws(Failure) -> ImportReport {
        var run = ImportRun(self, spec, onConflict, options)
        for user in users { try await run.add(user, progress) }
        return try await run.finish(progress)
    }

    /// The same for rows that come one after the other, for example from a file. An error of `users` is thrown as it
    /// is, after the rows before it are settled.
    public func importUsers<Users: AsyncSequence>(
        _ users: Users, spec: PasswordHashSpec? = nil, onConflict: ImportConflict = .fail,
        options: CallOptions = .init(), progress: (ImportReport) -> Void = { _ in }
    ) async throws -> ImportReport where Users.Element == ImportUser {
        var run = ImportRun(self, spec, onConflict, options)
        var iterator = users.makeAsyncIterator()
        while true {
            let user: ImportUser?
            do {
                user = try await iterator.next(isolation: #isolation)
            } catch {
                _ = try await run.finish(progress)
                throw error
            }
            guard let user else { return try await run.finish(progress) }
            try await run.add(user, progress)
        }
    }
}
