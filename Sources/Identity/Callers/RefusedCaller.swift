public import Base
public import Rules

/// The refusal of a caller whose credential is valid, but may not be used over the connection that it came by: from
/// its address, or with its certificate. The caller is told the failure alone; the caller's name is for the logs.
public struct RefusedCaller: Error {
    public let caller: Caller
    public let failure: Failure

    public init(_ caller: Caller, _ failure: Failure) {
        self.caller = caller
        self.failure = failure
    }
}
