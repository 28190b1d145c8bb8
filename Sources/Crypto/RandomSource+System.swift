public import Base
import COpenSSL

extension RandomSource {
    /// OpenSSL's generator, one per thread, seeded by the kernel. Ends the process if it has no entropy
    /// (RAND_bytes(3)).
    public static let system = RandomSource { buffer in
        OpenSSL.start
        guard buffer.isEmpty || RAND_bytes(buffer.octets, Int32(buffer.count)) == 1 else { OpenSSL.fail("RAND_bytes") }
    }
}
