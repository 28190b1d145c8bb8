public import Base

/// HKDF with SHA-256 (RFC 5869): derives independent keys from one key.
public enum HKDF {
    /// `count` is 1 to 8160 bytes. `info` names the purpose of the key; an empty `salt` is RFC 5869's default.
    public static func derive(key: Secret, salt: [UInt8] = [], info: [UInt8], count: Int) -> Secret {
        precondition((1...255 * Digest.byteCount).contains(count), "HKDF cannot derive \(count) bytes")
        let pseudorandomKey = key.withBytes { keyBytes in
            withWipedScratch(byteCount: Digest.byteCount) { scratch in
                HMACKey(Secret(salt)).writeTag(of: keyBytes, into: scratch)
                return HMACKey(Secret(copying: UnsafeRawBufferPointer(scratch)))
            }
        }
        let blockCount = (count + Digest.byteCount - 1) / Digest.byteCount
        return withWipedScratch(byteCount: blockCount * Digest.byteCount) { output in
            // Each round's message: the block before (not in the first round), info, the round's number.
            withWipedScratch(byteCount: Digest.byteCount + info.count + 1) { message in
                message[Digest.byteCount...].copyBytes(from: info)
                for round in 0..<blockCount {
                    message[message.count - 1] = UInt8(round + 1)
                    let start = round == 0 ? Digest.byteCount : 0
                    let block = output[round * Digest.byteCount..<(round + 1) * Digest.byteCount]
                    pseudorandomKey.writeTag(
                        of: UnsafeRawBufferPointer(rebasing: message[start...]),
                        into: UnsafeMutableRawBufferPointer(rebasing: block))
                    message.copyBytes(from: block)
                }
            }
            return Secret(copying: UnsafeRawBufferPointer(rebasing: output[..<count]))
        }
    }
}
