import Base
import Identity
import Messages
import Rules
import Tokens

/// A request's unchecked data about its end user. The use of a credential is counted by end user, so that one end user
/// does not use up the share of the others.
///
/// An ID token counts once it is found to be genuine. The end user's address does not count: many people share one, and
/// each would use up the share of all.
struct NamedEndUser: Sendable {
    var idToken = Text.empty
    var email = Text.empty

    /// One value for one end user, whichever way the request names it; empty when it names none.
    func bytes(settings: TenantSettings, project: Project) -> [UInt8] {
        if !idToken.isEmpty, let token = try? project.tokenCheck.verify(idToken),
            token.tenantID == settings.tenantID
        {
            return [UInt8(ascii: "u")] + token.uid.bytes
        }
        guard let email = Email(email, form: .toFind, limits: project.limits) else { return [] }
        return [UInt8(ascii: "e")] + email.canonical.bytes
    }
}
