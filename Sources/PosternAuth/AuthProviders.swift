/// The id of a provider, where FirebaseAuth has a name for it.
public struct AuthProviderID: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let apple = AuthProviderID(rawValue: "apple.com")
    public static let email = AuthProviderID(rawValue: EmailAuthProvider.id)
    public static let facebook = AuthProviderID(rawValue: "facebook.com")
    public static let gitHub = AuthProviderID(rawValue: "github.com")
    public static let google = AuthProviderID(rawValue: "google.com")
    public static let microsoft = AuthProviderID(rawValue: "microsoft.com")
    public static let phone = AuthProviderID(rawValue: "phone")
    public static let twitter = AuthProviderID(rawValue: "twitter.com")
    public static let yahoo = AuthProviderID(rawValue: "yahoo.com")

    /// Of an OpenID Connect provider that the tenant named: "oidc.<name>".
    public static func custom(_ id: String) -> AuthProviderID { AuthProviderID(rawValue: id) }
}

// Capital letters, because these are the names that applications have in their code.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let EmailAuthProviderID = AuthProviderID.email.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
public let FacebookAuthProviderID = AuthProviderID.facebook.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
public let GitHubAuthProviderID = AuthProviderID.gitHub.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
public let GoogleAuthProviderID = AuthProviderID.google.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
public let PhoneAuthProviderID = AuthProviderID.phone.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
public let TwitterAuthProviderID = AuthProviderID.twitter.rawValue

/// Credentials of Google's own sign-in.
public enum GoogleAuthProvider {
    public static let id = GoogleAuthProviderID

    /// The ID token counts, because it says whom it was made for.
    public static func credential(withIDToken idToken: String, accessToken: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .google, idToken: idToken, accessToken: accessToken)
    }
}

/// Credentials of Facebook's own sign-in.
public enum FacebookAuthProvider {
    public static let id = FacebookAuthProviderID

    public static func credential(withAccessToken accessToken: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .facebook, accessToken: accessToken)
    }
}

/// Credentials of GitHub's own sign-in.
public enum GitHubAuthProvider {
    public static let id = GitHubAuthProviderID

    public static func credential(withToken token: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .gitHub, accessToken: token)
    }
}
