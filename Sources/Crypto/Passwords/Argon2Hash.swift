import Base
import CArgon2

/// The memory addresses that argon2 reads: those that depend on the password (d), those that do not (i), or both (id).
public enum Argon2Variant: String, Sendable, CaseIterable {
    case d = "argon2d"
    case i = "argon2i"
    case id = "argon2id"
}

/// argon2 as other systems use it and libsodium does not: argon2d, argon2i, version 16, or with associated data.
///
/// libargon2 computes it, at about a third of libsodium's speed. Plain argon2id of version 19 is `Argon2idHash`.
struct Argon2Hash: PasswordHash {
    let variant: Argon2Variant
    let version: Int
    let memoryKiB: Int
    let passes: Int
    let lanes: Int
    let data: [UInt8]
    let salt: [UInt8]
    let tag: [UInt8]

    static let associatedDataByteCountMax = 64
    static let saltByteCountMax = 64
    static let tagByteCountMax = 64
    private static let dataName = [UInt8](",data=".utf8)

    /// `$argon2i$v=19$m=65536,t=4,p=1$salt$tag`, with `,data=` and associated data after p if there is any. A string
    /// without a version has version 16, as in the first release of argon2. Nil for a string that `Argon2idHash` reads.
    init?(_ string: PHCString) throws(CryptoError) {
        guard let variant = Argon2Variant(rawValue: string.id) else { return nil }
        var fields = string.fields.dropFirst()
        var version = 16
        if let first = fields.first, let named = PHCString.parameters(first, named: ["v"]) {
            version = named[0]
            fields = fields.dropFirst()
        }
        guard let costs = fields.first else { throw .malformed }
        let nameStart = Self.place(ofDataNameIn: costs)
        if variant == .id, version == 19, nameStart == nil { return nil }
        guard fields.count == 3,
            let numbers = PHCString.parameters(
                nameStart.map { costs[..<$0.lowerBound] } ?? costs, named: ["m", "t", "p"]),
            let data = nameStart.map({ PHCString.decode(costs[$0.upperBound...]) }) ?? [],
            nameStart == nil || !data.isEmpty,
            let salt = PHCString.decode(fields[fields.startIndex + 1]),
            let tag = PHCString.decode(fields[fields.startIndex + 2])
        else { throw .malformed }
        guard version == 16 || version == 19 else { throw .unsupported }
        guard Argon2idHash.memoryRange.contains(numbers[0]), Argon2idHash.passesRange.contains(numbers[1]),
            Argon2idHash.lanesRange.contains(numbers[2]), numbers[0] >= 8 * numbers[2],
            (8...Self.saltByteCountMax).contains(salt.count), (16...Self.tagByteCountMax).contains(tag.count),
            data.count <= Self.associatedDataByteCountMax
        else { throw .outOfRange }
        (self.variant, self.version, self.data, self.salt, self.tag) = (variant, version, data, salt, tag)
        (self.memoryKiB, self.passes, self.lanes) = (numbers[0], numbers[1], numbers[2])
    }

    /// The standard library's `firstRange(of:)` takes 30 times as long, and every sign-in passes here.
    private static func place(ofDataNameIn costs: ArraySlice<UInt8>) -> Range<Int>? {
        costs.indices.first { costs[$0] == dataName[0] && costs[$0...].starts(with: dataName) }
            .map { $0..<$0 + dataName.count }
    }

    var kind: PasswordHashKind {
        switch variant {
        case .d: .argon2d
        case .i: .argon2i
        case .id: .argon2id
        }
    }

    var cost: String { PHCString.argon2Cost(variant, version, memoryKiB, passes, lanes, data) }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(tag))" }

    /// 900 ns for a KiB in each pass.
    var work: PasswordHashWork {
        PasswordHashWork(
            memoryByteCount: memoryKiB * 1_024, time: .nanoseconds(Int64(memoryKiB) * Int64(passes) * 900))
    }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        try withWipedScratch(byteCount: tag.count) { (computed) throws(CryptoError) in
            let code = password.withBytes { bytes in
                postern_argon2(
                    variant.type, UInt32(clamping: version), UInt32(clamping: memoryKiB), UInt32(clamping: passes),
                    UInt32(clamping: lanes), bytes.octets, bytes.count, salt, salt.count, data, data.count,
                    computed.octets, computed.count)
            }
            // All parameters were checked, so only the allocation can fail.
            guard code == ARGON2_OK.rawValue else { throw .outOfMemory }
            return constantTimeEqual([UInt8](computed), tag)
        }
    }
}

extension PHCString {
    /// The part of the string before the salt and the tag.
    static func argon2Cost(
        _ variant: Argon2Variant, _ version: Int, _ memoryKiB: Int, _ passes: Int, _ lanes: Int, _ data: [UInt8]
    ) -> String {
        "$\(variant.rawValue)$v=\(version)$m=\(memoryKiB),t=\(passes),p=\(lanes)"
            + (data.isEmpty ? "" : ",data=\(encode(data))")
    }
}

extension Argon2Variant {
    fileprivate var type: argon2_type {
        switch self {
        case .d: Argon2_d
        case .i: Argon2_i
        case .id: Argon2_id
        }
    }
}
