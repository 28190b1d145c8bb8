extension MasterKey {
    /// An Ed25519 key for signatures that others than this server check. The public part cannot make a signature.
    public func signingKey(_ label: String) -> SigningKey {
        .ed25519(seed: derive("signing/" + label, count: SigningKey.ed25519SeedByteCount))
    }
}
