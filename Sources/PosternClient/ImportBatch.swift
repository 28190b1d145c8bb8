package import Base
package import Messages

/// A batch of an import that is being filled. `PosternAdmin` and the command line tool share it.
///
/// A batch that is handed out is below each of the server's limits: 500 users, the fields and the memory of a message,
/// the size of a frame. The server ends an import at a message above them. So a user that is above a limit alone is
/// refused here, and the import can go on.
package struct ImportBatch: Sendable {
    private static let limits = Limits()
    /// Far below the size of a frame, so that the server answers often, and several batches fit into its memory.
    private static let bytesMax = 1024 * 1024
    /// The first batch has the import's own fields, such as `spec`: they are far fewer than a hundred.
    private static let fieldsMax = limits.messages.fieldsMax - 100
    /// The memory that the decoder needs beside the entries: lists of a thousand entries take half of it.
    private static let ownMemory = 64 * 1024
    /// The largest message, with room in its frame for the call's metadata.
    private static let frameBytesMax = limits.framePayloadMax - 64 * 1024

    private var request: UsersImportRequest
    private var cost = DecodingCost()

    /// Begins with the request of the import's first batch, or with an empty one.
    package init(_ request: UsersImportRequest = UsersImportRequest()) { self.request = request }

    /// False while only hash specs were added.
    package var hasUsers: Bool { !request.users.isEmpty }

    /// Adds a user. If the batch has no room for the user, the batch is returned as it was before, and the user is the
    /// first of the next batch.
    ///
    /// Throws MESSAGE_LIMIT or MESSAGE_TOO_LARGE for a user that no message can hold. The batch stays as it was.
    package mutating func add(_ user: ImportUser) throws(Failure) -> UsersImportRequest? {
        let cost = user.decodingCost
        try Self.check(user, cost)
        let full = makeRoom(for: cost, behind: request.users.count)
        request.users.append(user)
        return full
    }

    /// Adds a hash spec, in the same way.
    package mutating func add(_ spec: NamedHashSpec) -> UsersImportRequest? {
        let full = makeRoom(for: spec.decodingCost, behind: request.hashSpecs.count)
        request.hashSpecs.append(spec)
        return full
    }

    /// Ends the batch, and begins the next one.
    package mutating func take() -> UsersImportRequest {
        let taken = request
        self = ImportBatch()
        return taken
    }

    /// Counts an entry, and returns the batch before it if the entry does not fit there. `count` is the number of
    /// entries of the same kind.
    private mutating func makeRoom(for entry: DecodingCost, behind count: Int) -> UsersImportRequest? {
        var full: UsersImportRequest?
        let isEmpty = request.users.isEmpty && request.hashSpecs.isEmpty
        if !isEmpty, count >= Self.limits.importBatchMax || Self.isTooMuch(cost.adding(entry)) { full = take() }
        cost = cost.adding(entry)
        return full
    }

    private static func isTooMuch(_ cost: DecodingCost) -> Bool {
        cost.byteCount > bytesMax || cost.fieldCount > fieldsMax || takesTooMuchMemory(cost)
    }

    private static func takesTooMuchMemory(_ cost: DecodingCost) -> Bool {
        let messages = limits.messages
        let memoryMax = max(messages.arenaBudgetFloor, messages.arenaBudgetFactor * cost.byteCount)
        return cost.memoryByteCount > min(messages.arenaBudgetMax, memoryMax) - ownMemory
    }

    /// MESSAGE_LIMIT, MESSAGE_TOO_LARGE: the reasons for which the server would refuse a batch of this user alone.
    private static func check(_ user: ImportUser, _ cost: DecodingCost) throws(Failure) {
        let alone = DecodingCost().adding(cost)
        // Nearly all users: as few fields as one message may have, and small enough for a batch.
        if cost.fieldCount <= limits.messages.fieldsPerMessageMax, !isTooMuch(alone) { return }
        guard alone.byteCount <= frameBytesMax else {
            throw Failure(.messageTooLarge, "The user has \(alone.byteCount) bytes, more than a message may have.")
        }
        var strict = limits.messages
        strict.fieldsMax = fieldsMax
        do throws(DecodeError) {
            _ = try UsersImportRequest(decoding: UsersImportRequest(users: [user]).encoded(), limits: strict)
        } catch {
            if case .limit(let what) = error { throw Failure(.messageLimit, "The user has too many \(what).") }
        }
        guard !takesTooMuchMemory(alone) else {
            throw Failure(.messageTooLarge, "Decoding the user takes more memory than a message may take.")
        }
    }
}

extension DecodingCost {
    /// The cost of a list with one more entry. The entry is a field of the list's message itself, too.
    fileprivate func adding(_ entry: DecodingCost) -> DecodingCost {
        DecodingCost(
            byteCount: byteCount + entry.byteCount, fieldCount: fieldCount + entry.fieldCount + 1,
            memoryByteCount: memoryByteCount + entry.memoryByteCount)
    }
}
