public import Base

/// The only secret outside of the store: every other key is derived from it by label, or sealed under a derived key.
///
/// The labels are part of the stored format: a changed label is a changed key.
public struct MasterKey: Sendable {
    public static let byteCount = 32

    private let secret: Secret

    /// Exactly 32 bytes, or `malformed`.
    public init(_ secret: Secret) throws(CryptoError) {
        guard secret.byteCount == Self.byteCount else { throw .malformed }
        self.secret = secret
    }

    public static func generate(random: RandomSource) -> MasterKey {
        withWipedScratch(byteCount: byteCount) { scratch in
            random.fill(scratch)
            return MasterKey(known: Secret(copying: UnsafeRawBufferPointer(scratch)))
        }
    }

    private init(known secret: Secret) { self.secret = secret }

    /// For writing the key file.
    public func export() -> Secret { secret }

    /// 8 bytes by which a store recognises its master key; no secret.
    public var id: [UInt8] { derive("id", count: 8).withBytes { [UInt8]($0) } }

    /// For secrets at rest.
    public var sealing: SealingKey { SealingKey(derive("sealing", count: 32)) }

    /// For the entries of a cluster's journal: a key for each block of positions.
    public func journal(block: UInt64, byteCountMax: Int) -> SealingKey {
        SealingKey(derive("journal/\(block)", count: 32), sealedByteCountMax: byteCountMax)
    }

    /// For a copy of the store by which nodes join a cluster: a key for each copy.
    public func snapshot(id: [UInt8], byteCountMax: Int) -> SealingKey {
        SealingKey(derive("snapshot/\(Hex.encode(id))", count: 32), sealedByteCountMax: byteCountMax)
    }

    /// For the tags on the records of one table.
    public func recordMAC(table: String) -> MACKey { MACKey(derive("record/" + table, count: MACKey.keyByteCount)) }

    /// For other authenticated data, each kind with its own label: page tokens, pending factors, checkpoints.
    public func hmac(_ label: String) -> HMACKey { HMACKey(derive("hmac/" + label, count: 32)) }

    func derive(_ label: String, count: Int) -> Secret {
        HKDF.derive(key: secret, info: [UInt8]("postern/1/\(label)".utf8), count: count)
    }
}
