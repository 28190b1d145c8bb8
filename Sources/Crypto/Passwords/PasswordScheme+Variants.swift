// Schemes that are easily confused with each other: exports rarely say how hashes were made.

extension PasswordScheme {
    /// This scheme, then others that may have made hashes of the same form. Signer keys and memory costs stay the same,
    /// because nobody confuses them with others. Some variants may be out of range.
    public var variants: [PasswordScheme] {
        switch self {
        case .text, .scrypt: [self]
        case .argon2(let variant, let version, let memoryKiB, let passes, let lanes, let data):
            Self.distinct([variant] + Argon2Variant.allCases).flatMap { variant in
                Self.distinct([version, 19, 16]).map { version in
                    .argon2(
                        variant, version: version, memoryKiB: memoryKiB, passes: passes, lanes: lanes,
                        associatedData: data)
                }
            }
        case .firebaseScrypt(let separator, let rounds, let memoryCost, let signerKeyID):
            // Firebase's own is one byte, 0x07; some forget it.
            Self.distinct([separator, [7], []]).map { separator in
                .firebaseScrypt(
                    saltSeparator: separator, rounds: rounds, memoryCost: memoryCost, signerKeyID: signerKeyID)
            }
        case .digest(let function, let rounds, let order, let hashesHex):
            Self.distinct([rounds, rounds + 1, rounds - 1]).flatMap { rounds in
                [order, order.other].flatMap { order in
                    [hashesHex, !hashesHex].map { hashesHex in
                        .digest(function, rounds: rounds, order: order, hashesHex: hashesHex)
                    }
                }
            }
        case .hmac(let function, let order, let signerKeyID):
            [order, order.other].map { .hmac(function, order: $0, signerKeyID: signerKeyID) }
        case .pbkdf2(let function, let rounds):
            Self.distinct([function, .sha1, .sha256, .sha512]).map { .pbkdf2($0, rounds: rounds) }
        }
    }

    private static func distinct<Value: Equatable>(_ values: [Value]) -> [Value] {
        values.reduce(into: []) { found, value in
            if !found.contains(value) { found.append(value) }
        }
    }
}

extension HashInputOrder {
    fileprivate var other: HashInputOrder { self == .saltFirst ? .passwordFirst : .saltFirst }
}
