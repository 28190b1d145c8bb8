import Base
import Crypto
public import Messages
import Rules

/// Checks whether a hash is of a password, under the parameters of an import and under others that are easily mistaken
/// for them.
///
/// All input comes with the request: the tenant's users are not read, and nothing is stored. The work runs on the
/// password pool and counts as the tenant's.
extension UserImports {
    /// MISSING_PASSWORD, PASSWORD_TOO_LONG, INVALID_HASH_SPEC, INVALID_PASSWORD_HASH, PASSWORD_HASH_TOO_COSTLY.
    public func tryHashSpec(
        _ request: UsersVerifyHashSpecRequest, _ turn: PasswordTurn
    ) async throws -> UsersVerifyHashSpecResponse {
        let limits = resources.limits
        guard !request.password.isEmpty else {
            throw Failure.invalid(.missingPassword, field: "password", "is required")
        }
        // This also bounds the time of normalising the password.
        guard request.password.byteCount <= limits.passwordMax else {
            throw Failure.invalid(
                .passwordTooLong, field: "password", "must have at most \(limits.passwordMax) bytes")
        }
        var signerKey: Secret?
        let scheme = try PasswordScheme(request.spec ?? PasswordHashSpec()) { key in
            signerKey = key
            return Self.signerKeyID
        }
        guard let scheme else {
            throw Failure.invalid(.invalidHashSpec, field: "spec", "needs an algorithm")
        }
        let tried = try candidates(of: scheme, request, settings: turn.settings)
        let right = try await passwords.matching(
            request.password, tried.map(\.credential), signerKey: signerKey, turn)
        let matching = try right.map { try tried[$0].scheme.spec { _ in .empty } }
        return UsersVerifyHashSpecResponse(
            matches: right.first == 0, matching: matching, triedCount: Int32(clamping: tried.count))
    }

    private static let signerKeyID: Text = "trial"

    /// The candidates: the scheme itself, then its variants until `hashTrialTimeMax` is used up.
    private func candidates(
        of scheme: PasswordScheme, _ request: UsersVerifyHashSpecRequest, settings: TenantSettings
    ) throws -> [(scheme: PasswordScheme, credential: PasswordCredential)] {
        let hash: [UInt8] = request.passwordHash.withBytes { Array($0) }
        let limits = resources.limits
        var tried: [(scheme: PasswordScheme, credential: PasswordCredential)] = []
        var time = Duration.zero
        for (index, variant) in scheme.variants.enumerated() {
            let credential: PasswordCredential
            do throws(CryptoError) {
                credential = try PasswordCredential(variant, hash: hash, salt: request.salt)
            } catch {
                if index > 0 { continue }
                throw Failure.invalid(
                    .invalidPasswordHash, field: "password_hash", "is not a hash of the algorithm in the spec")
            }
            if index == 0 {
                try ImportedHashes.checkCost(credential, settings: settings, limits: limits)
            } else if time + credential.work.time > limits.administration.hashTrialTimeMax {
                break
            }
            time = time + credential.work.time
            tried.append((variant, credential))
        }
        return tried
    }
}
