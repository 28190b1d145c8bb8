import Base
import Identity
import Signing

extension PrometheusPage {
    /// Appends when the next signing keys are made.
    mutating func signingKeys(_ keys: SigningKeys) {
        family(
            "postern_signing_key_rotation_timestamp_seconds", "gauge",
            "When the server makes the next signing key by itself; 0 if it makes none.")
        for (use, signer) in [("id_token", keys.idTokens), ("session_cookie", keys.sessionCookies)] {
            value(
                "postern_signing_key_rotation_timestamp_seconds", #"use="\#(use)""#,
                Double(signer.nextKeyAt?.microseconds ?? 0) / 1_000_000)
        }
    }
}
