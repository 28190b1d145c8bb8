public import Base
import Glibc

extension RandomSource {
    /// The kernel's generator: none of its state is in this process. A short call is several times as fast as
    /// OpenSSL's generator, which the kernel seeds.
    ///
    /// It waits only if the system has just started and has not gathered any entropy yet (getentropy(3), random(4)).
    public static let system = RandomSource { buffer in
        var rest = buffer
        while !rest.isEmpty {
            let part = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(256))
            let code = getentropy(part.baseAddress, part.count)
            // Proof: it fails only for more than 256 bytes, a wrong address, and a kernel from before 2014.
            precondition(code == 0, "getentropy: errno \(errno)")
            rest = UnsafeMutableRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }
}
