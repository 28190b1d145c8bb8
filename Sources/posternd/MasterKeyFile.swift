import Base
import Crypto
import Glibc

/// The file of the master key: 32 bytes as 64 hex digits. Only its owner can read it, and the first start makes it.
enum MasterKeyFile {
    /// Refuses a file that others could read (`SecretFile`), or that is missing although there is a store: without its
    /// key a store cannot be read, and a new key would only hide that.
    static func load(_ path: String, mayCreate: Bool) throws -> MasterKey {
        guard Files.mode(of: path) != nil else {
            guard mayCreate else {
                throw ConfigurationError(
                    description: "\(path): the master key is missing; name the store's own folder "
                        + "(--data-directory), put back the key that the store was made with, or, for a "
                        + "node that joins a cluster, copy the file of another node")
            }
            let key = MasterKey.generate(random: .system)
            let digits = key.export().withBytes { Hex.encode($0) }
            try PrivateFile.create(path, digits.bytes + [UInt8(ascii: "\n")])
            return key
        }
        PrivateFile.removeLeftover(of: path)
        let bytes = try SecretFile.read(path, byteCountMax: 256)
        guard let raw = Hex.decode(bytes), raw.count == MasterKey.byteCount else {
            throw ConfigurationError(description: "\(path): must hold 64 hex digits")
        }
        return try MasterKey(Secret(raw))
    }
}
