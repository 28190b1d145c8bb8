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
    /// `hashSpecs` say how the passwords were hashed of users that name one of them (`ImportUser.hashSpec`), at most
    /// 1,000. `spec` says it of the others; users without passwords need none. `progress` gets the report after each
    /// batch. Rows are refused one by one (`ImportReport.rejections`). An error ends the import, and its
    /// metadata `checkpoint` is the number of settled rows. Throws INVALID_HASH_SPEC.
    ///
    /// If the connection is lost after rows are settled, `onConflict` decides:
    ///
    /// - `.skip` and `.replace`: the import connects again and repeats the unsettled rows, up to the channel's
    ///   `retry.attemptsMax` losses in a row. If the server was restored from a backup meanwhile, settled rows may be
    ///   gone: STREAM_ENDED is thrown, with the status ABORTED and the checkpoint 0. Import all rows again with
    ///   `.skip`. A server that does not tell its history (`ProjectServerInfoResponse.historyID`) is not asked.
    /// - `.fail`: the loss is thrown, because a repeated row would be refused as its own duplicate. Continue after the
    ///   checkpoint with `.skip`, unless the server was restored meanwhile.
    public func importUsers(
        _ users: some Sequence<ImportUser>, spec: PasswordHashSpec? = nil, hashSpecs: [NamedHashSpec] = [],
        onConflict: ImportConflict = .fail, options: CallOptions = .init(),
        progress: (ImportReport) -> Void = { _ in }
    ) async throws(Failure) -> ImportReport {
        var run = ImportRun(self, spec, onConflict, options)
        for spec in hashSpecs { run.add(spec) }
        for user in users { try await run.add(user, progress) }
        return try await run.finish(progress)
    }

    /// Imports users that arrive one after the other, for example from a file. An error of `users` is thrown unchanged,
    /// when the rows before it are settled.
    public func importUsers<Users: AsyncSequence>(
        _ users: Users, spec: PasswordHashSpec? = nil, hashSpecs: [NamedHashSpec] = [],
        onConflict: ImportConflict = .fail, options: CallOptions = .init(),
        progress: (ImportReport) -> Void = { _ in }
    ) async throws -> ImportReport where Users.Element == ImportUser {
        var run = ImportRun(self, spec, onConflict, options)
        for spec in hashSpecs { run.add(spec) }
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

    /// Imports what `exportUsers` of another tenant, or of another server, answers: the users with the specs of their
    /// passwords' hashes. Throws STREAM_ENDED for an export that is not complete, when its users are imported.
    public func importUsers<Export: AsyncSequence>(
        exported export: Export, onConflict: ImportConflict = .fail, options: CallOptions = .init(),
        progress: (ImportReport) -> Void = { _ in }
    ) async throws -> ImportReport where Export.Element == UsersExportResponse {
        var run = ImportRun(self, nil, onConflict, options)
        var iterator = export.makeAsyncIterator()
        var isComplete = false
        while true {
            let message: UsersExportResponse?
            do {
                message = try await iterator.next(isolation: #isolation)
            } catch {
                _ = try await run.finish(progress)
                throw error
            }
            guard let message else { break }
            for spec in message.hashSpecs { run.add(spec) }
            for user in message.users { try await run.add(user, progress) }
            isComplete = message.cursor.isEmpty
        }
        let report = try await run.finish(progress)
        guard isComplete else {
            let ended = Failure(.streamEnded, "The export ended early, and its users are imported: export the rest.")
            throw ended.with("checkpoint", "\(report.checkpoint)")
        }
        return report
    }
}
