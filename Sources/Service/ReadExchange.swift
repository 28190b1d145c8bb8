import Base
import Identity
import Messages
import Rules
import Store

/// The data with which a method that only reads is run, on the loop, without leaving it.
struct ReadExchange: ~Copyable {
    let gate: Gate
    let method: MethodDescriptor
    let caller: Caller?
    let context: ConnectionContext

    var limits: MessageLimits { gate.service.limits.messages }

    /// Runs `body` in one read transaction. `body` encodes its response while the transaction lasts: a reply may point
    /// into the database's pages.
    ///
    /// `hasWaited`: the credential may have been revoked since the call came in.
    borrowing func read(
        requestedTenantID: Text?, hasWaited: Bool = false,
        _ body: (borrowing ReadCall, borrowing ReadTransaction) throws -> Void
    ) throws {
        let project = gate.service.project
        try context.reader(of: project.store).read { transaction in
            if hasWaited, let caller { try project.callers.checkStillValid(caller, in: transaction) }
            let admission = try gate.admission(
                requestedTenantID: requestedTenantID, method: method, caller: caller, context: context,
                in: transaction)
            try body(ReadCall(admission), transaction)
        }
    }
}
