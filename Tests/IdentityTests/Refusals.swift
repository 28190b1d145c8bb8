import Base

/// The reason of the failure that `body` throws, nil if it throws nothing.
func reason(_ body: () throws -> Void) -> String? {
    do {
        try body()
        return nil
    } catch {
        return (error as? Failure)?.reason ?? "\(error)"
    }
}

func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
