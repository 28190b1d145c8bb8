import Base
import TestSupport

/// The failure that `body` throws, nil if it throws nothing.
func failure(_ body: () throws -> Void) -> Failure? {
    do {
        try body()
        return nil
    } catch {
        return error as? Failure ?? Failure(.unknown, "NO_FAILURE", "\(error)")
    }
}

func reason(_ body: () throws -> Void) -> String? { failure(body)?.reason }

func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
