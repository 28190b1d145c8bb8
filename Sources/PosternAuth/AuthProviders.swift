/// The id of an identity provider, by FirebaseAuth's names.
///
/// ```swift
/// let provider = OAuthProvider(providerID: .microsoft)
/// print(provider.providerID)  // "microsoft.com"
/// ```
public struct AuthProviderID: RawRepresentable, Hashable, Sendable {
    /// The id as the server knows it, for example "google.com".
    public let rawValue: String

    /// Makes an id of the server's string.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Sign in with Apple: "apple.com".
    public static let apple = AuthProviderID(rawValue: "apple.com")
    /// Email and password, or email link: "password".
    public static let email = AuthProviderID(rawValue: EmailAuthProvider.id)
    /// Facebook: "facebook.com".
    public static let facebook = AuthProviderID(rawValue: "facebook.com")
    /// GitHub: "github.com".
    public static let gitHub = AuthProviderID(rawValue: "github.com")
    /// Google: "google.com".
    public static let google = AuthProviderID(rawValue: "google.com")
    /// Microsoft: "microsoft.com".
    public static let microsoft = AuthProviderID(rawValue: "microsoft.com")
    /// Phone number: "phone".
    public static let phone = AuthProviderID(rawValue: "phone")
    /// Twitter: "twitter.com".
    public static let twitter = AuthProviderID(rawValue: "twitter.com")
    /// Yahoo: "yahoo.com".
    public static let yahoo = AuthProviderID(rawValue: "yahoo.com")

    /// The id of an OpenID Connect provider that the tenant has named: "oidc.<name>".
    public static func custom(_ id: String) -> AuthProviderID { AuthProviderID(rawValue: id) }
}

// Capital letters, because these are the names that applications have in their code.
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "password".
public let EmailAuthProviderID = AuthProviderID.email.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "facebook.com".
public let FacebookAuthProviderID = AuthProviderID.facebook.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "github.com".
public let GitHubAuthProviderID = AuthProviderID.gitHub.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "google.com".
public let GoogleAuthProviderID = AuthProviderID.google.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "phone".
public let PhoneAuthProviderID = AuthProviderID.phone.rawValue
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for "twitter.com".
public let TwitterAuthProviderID = AuthProviderID.twitter.rawValue

/// Makes credentials of Google's own sign-in.
///
/// ```swift
/// try await auth.signIn(with: GoogleAuthProvider.credential(withIDToken: idToken, accessToken: accessToken))
/// ```
public enum GoogleAuthProvider {
    /// The provider id: "google.com".
    public static let id = GoogleAuthProviderID

    /// Makes a credential of Google's tokens. The server checks the ID token, because an ID token names its audience.
    public static func credential(withIDToken idToken: String, accessToken: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .google, idToken: idToken, accessToken: accessToken)
    }
}

/// Makes credentials of Facebook's own sign-in.
///
/// ```swift
/// try await auth.signIn(with: FacebookAuthProvider.credential(withAccessToken: accessToken))
/// ```
public enum FacebookAuthProvider {
    /// The provider id: "facebook.com".
    public static let id = FacebookAuthProviderID

    /// Makes a credential of Facebook's access token.
    public static func credential(withAccessToken accessToken: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .facebook, accessToken: accessToken)
    }
}

/// Makes credentials of GitHub's own sign-in.
///
/// ```swift
/// try await user.link(with: GitHubAuthProvider.credential(withToken: accessToken))
/// ```
public enum GitHubAuthProvider {
    /// The provider id: "github.com".
    public static let id = GitHubAuthProviderID

    /// Makes a credential of GitHub's access token.
    public static func credential(withToken token: String) -> AuthCredential {
        OAuthProvider.credential(providerID: .gitHub, accessToken: token)
    }
}
