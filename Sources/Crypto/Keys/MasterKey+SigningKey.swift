extension MasterKey {
    /// An Ed25519 key for what others than this server check. Whoever has the public part cannot make a signature.
    public func signingKey(_ label: String) -> SigningKey {
        .ed25519(seed: derive("signing/" + label, count: SigningKey.ed25519SeedByteCount))
    }
}
