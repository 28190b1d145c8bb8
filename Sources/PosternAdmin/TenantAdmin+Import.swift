public import Base
public import Messages
public import PosternClient

extension TenantAdmin {
    /// Exports all users in the order of their uids' bytes, in the form that `importUsers` takes, several in each
    /// message.
    ///
    /// An export with the `cursor` of a message continues after that message. The cursor of the last message is empty:
    /// a stream that ends without such a message is not complete. Password hashes need an API key with
    /// `exportPasswordHashes`. Throws PASSWORD_HASH_EXPORT_NOT_ALLOWED, INVALID_PAGE_TOKEN.
    public func exportUsers(
        after cursor: Text = .empty, includingPasswordHashes: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> ServerStream<UsersExportResponse> {
        let request = UsersExportRequest(
            tenantID: tenantID, cursor: cursor, includePasswordHashes: includingPasswordHashes)
        return try await users.export(request, options: options)
    }

    /// Imports users with their password hashes, in batches.
    ///
    /// `spec` says how the passwords were hashed; users without passwords need none. `progress` gets the report after
    /// each batch. Rows are refused one by one (`ImportReport.rejections`). An error ends the import, and its
    /// metadata `checkpoint` is the number of settled rows. Throws INVALID_HASH_SPEC.
    ///
    /// If the connection is lost after rows are settled, `onConflict` decides:
    ///
    /// - `.skip` and `.replace`: the import connects again and repeats the unsettled rows, up to the channel's
    ///   `retry.attemptsMax` losses in a row.
    /// - `.fail`: the loss is thrown, because a repeated row would be refused as its own duplicate. Continue after the
    ///   checkpoint with `.skip`.
    public func importUsers(
        _ users: some Sequence<ImportUser>, spec: PasswordHashSpec? = nil, onConflict: ImportConflict = .fail,
        options: CallOptions = .init(), progress: (ImportReport) -> Void = { _ in }
    ) async throws(Failure) -> ImportReport {
        var run = ImportRun(self, spec, onConflict, options)
        for user in users { try await run.add(user, progress) }
        return try await run.finish(progress)
    }

    /// Imports users that arrive one after the other, for example from a file. An error of `users` is thrown unchanged,
    /// when the rows before it are settled.
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
