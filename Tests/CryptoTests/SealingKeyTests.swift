import Base
import Crypto
import Testing

@Suite struct SealingKeyTests {
    private let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))

    private func error(_ sealed: [UInt8], context: [UInt8] = utf8("ctx")) -> CryptoError? {
        do throws(CryptoError) {
            _ = try sealing.open(sealed, context: context)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [0, 1, 15, 16, 17, 1_200, SealingKey.sealedByteCountMax - SealingKey.overhead])
    func whatIsSealedOpensAgain(count: Int) throws {
        let secret = Secret([UInt8](repeating: 0x5A, count: count))
        let sealed = try sealing.seal(secret, context: utf8("tenant/key"), random: .system)
        #expect(sealed.count == count + SealingKey.overhead)
        #expect(try sealing.open(sealed, context: utf8("tenant/key")) == secret)
    }

    @Test(arguments: [1, 1 << 20, 4 << 20])
    func whatIsTooLongToSealIsAnErrorAndNoTrap(over: Int) {
        let secret = Secret([UInt8](repeating: 0x5A, count: SealingKey.sealedByteCountMax - SealingKey.overhead + over))
        #expect(throws: CryptoError.outOfRange) { try sealing.seal(secret, context: [], random: .system) }
    }

    @Test func anEmptyContextIsAContext() throws {
        let sealed = try sealing.seal(Secret("s"), context: [], random: .system)
        #expect(try sealing.open(sealed, context: []) == Secret("s"))
        #expect(error(sealed, context: [0]) == .notAuthentic)
    }

    /// Computed with Python's cryptography: AESGCM under 07…07, nonce 00…0b, associated data header ‖ context.
    @Test func theFormatIsFixed() throws {
        let random = RandomSource { buffer in buffer.copyBytes(from: 0..<UInt8(buffer.count)) }
        let sealed = try sealing.seal(Secret("secret"), context: utf8("ctx"), random: random)
        #expect(sealed == hex("0107436191ca0d25da000102030405060708090a0b6be48a02787d0a4dbfe480e0a8e871eb06ff24ea1298"))
    }

    @Test func aChangeAnywhereIsNoticed() throws {
        let sealed = try sealing.seal(Secret("forty-two"), context: utf8("ctx"), random: .system)
        for index in sealed.indices {
            for bit in 0..<8 {
                var changed = sealed
                changed[index] ^= 1 << UInt8(bit)
                let expected: CryptoError? =
                    switch index {
                    case 0: .unsupported
                    case 1...8: .unknownKey(id: Hex.encode(changed[1...8]))
                    default: .notAuthentic
                    }
                #expect(error(changed) == expected)
            }
        }
    }

    @Test func aCutAnywhereIsNoticed() throws {
        let sealed = try sealing.seal(Secret("forty-two"), context: utf8("ctx"), random: .system)
        for count in 0..<sealed.count {
            #expect(error(Array(sealed[..<count])) == (count < SealingKey.overhead ? .malformed : .notAuthentic))
        }
        #expect(error(sealed + [0]) == .notAuthentic)
        #expect(error(sealed + [UInt8](repeating: 0, count: SealingKey.sealedByteCountMax)) == .malformed)
    }

    @Test func anotherPlaceOrKeyDoesNotOpenIt() throws {
        let sealed = try sealing.seal(Secret("s"), context: utf8("tenant-a"), random: .system)
        #expect(error(sealed, context: utf8("tenant-b")) == .notAuthentic)
        let other = SealingKey(Secret([UInt8](repeating: 8, count: 32)))
        #expect(throws: CryptoError.unknownKey(id: Hex.encode(sealing.id))) {
            try other.open(sealed, context: utf8("tenant-a"))
        }
    }

    @Test func aSecretIsNeverSealedTheSameWayTwice() throws {
        let sealed = try (0..<2).map { _ in try sealing.seal(Secret("s"), context: [], random: .system) }
        #expect(sealed[0] != sealed[1])
    }

    @Test func aMasterKeyHas32Bytes() throws {
        for count in [0, 16, 31, 33] {
            #expect(throws: CryptoError.malformed) { try MasterKey(Secret([UInt8](repeating: 1, count: count))) }
        }
        let master = MasterKey.generate(random: .system)
        #expect(try MasterKey(master.export()).id == master.id)
        #expect(MasterKey.generate(random: .system).id != master.id)
    }

    @Test func everyLabelGivesAnotherKey() throws {
        let master = try MasterKey(Secret([UInt8](repeating: 3, count: 32)))
        let tags = ["a", "b", ""].map { master.hmac($0).tag(of: [1]) }
        #expect(Set(tags).count == 3)
        let records = ["users", "sessions"].map { table in
            [UInt8]([1]).withUnsafeBytes { master.recordMAC(table: table).tag(of: $0, at: $0) }
        }
        #expect(records[0] != records[1])
        #expect(master.sealing.id != master.id)
    }

    /// The labels are part of the stored format: these bytes must never change.
    @Test func derivedKeysStayTheSame() throws {
        let master = try MasterKey(Secret([UInt8](repeating: 3, count: 32)))
        #expect(Hex.encode(master.id) == "ac11f5588bc19f03")
        #expect(Hex.encode(master.hmac("x").tag(of: []).prefix(8)) == "adea9a4e81fc8d04")
        #expect(Hex.encode(master.sealing.id) == "550da389317e71eb")
    }
}
