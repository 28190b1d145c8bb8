import Base
import Identity
import Messages
import Rules
import Store

/// The data with which a method that only reads is run, on the loop, without leaving it.
struct ReadExchange: ~Copyable {
    /// Borrowed from the router, because all loops share it (docs/decisions/0132).
    private let gate: Unmanaged<Gate>
    /// Nil only for methods that need no credential.
    private let caller: Caller?
    private let context: ConnectionContext

    init(gate: Gate, caller: Caller?, context: ConnectionContext) {
        self.gate = .passUnretained(gate)
        self.caller = caller
        self.context = context
    }

    var limits: MessageLimits { gate._withUnsafeGuaranteedRef { $0.service.limits.messages } }

    /// Runs `body` in one read transaction. `body` encodes its response while the transaction lasts: a reply may point
    /// into the database's pages.
    ///
    /// `hasWaited`: the credential may have been revoked since the call came in.
    borrowing func read(
        _ method: MethodDescriptor, requestedTenantID: Text?, hasWaited: Bool = false,
        _ body: (borrowing ReadCall, borrowing ReadTransaction) throws -> Void
    ) throws {
        try gate._withUnsafeGuaranteedRef { gate in
            try context.reader(of: gate.project.store).read { transaction in
                if hasWaited, let caller { try gate.project.callers.checkStillValid(caller, in: transaction) }
                let named = try gate.admit(
                    requestedTenantID: requestedTenantID, method: method, caller: caller, context: context,
                    in: transaction)
                let call = ReadCall(gate.service, method, caller: caller, context: context, namedTenantID: named)
                try body(call, transaction)
            }
        }
    }
}
