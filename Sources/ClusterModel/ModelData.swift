/// The data of the model's nodes: only a few values, so that requests often collide.
struct ModelState: Equatable {
    static let keyCount = 4

    /// Changed by rotation: only a request that names the present value may put another, as with refresh tokens.
    var tokens = SIMD4<UInt64>(repeating: 0)
    /// Each has one owner at a time, as emails have. 0: free.
    var owners = SIMD4<UInt64>(repeating: 0)
    /// While it is off, guarded requests are refused, as sign-ups are.
    var isToggleOn = true
    var toggleRevision: UInt64 = 0

    mutating func apply(_ put: Put) {
        switch put {
        case .token(let key, let value): tokens[key] = value
        case .owner(let key, let value): owners[key] = value
        case .toggle(let isOn, let revision): (isToggleOn, toggleRevision) = (isOn, revision)
        }
    }

    /// What a request changes here; nil for a refusal.
    func decide(_ request: Request) -> Put? {
        switch request.kind {
        case .rotate(let key, let expected): tokens[key] == expected ? .token(key, request.id) : nil
        case .claim(let key): isToggleOn && owners[key] == 0 ? .owner(key, request.id) : nil
        case .release(let key): owners[key] == 0 ? nil : .owner(key, 0)
        case .toggle(let isOn): isOn == isToggleOn ? nil : .toggle(isOn, request.id)
        case .set(let key): .token(key, request.id)
        }
    }
}

enum Put: Equatable {
    case token(Int, UInt64)
    case owner(Int, UInt64)
    case toggle(Bool, UInt64)
}

/// A client's request to one node.
struct Request: Equatable {
    enum Kind: Equatable {
        case rotate(Int, from: UInt64)
        case claim(Int)
        case release(Int)
        case toggle(Bool)
        /// Never refused.
        case set(Int)
    }

    /// Unique among all requests. Written values hold it, so that they show which request wrote them.
    let id: UInt64
    let kind: Kind
    /// Whether sign-ups were allowed when the request was admitted, before its body ran.
    let wasToggleOn: Bool
    /// The journal's end when the client sent it.
    var endBefore: Int
}
