import Base

/// A link out of a mail: `…?mode=signIn&oobCode=…&tenantId=…&continueUrl=…`, perhaps inside another link's `link`.
struct ActionLink {
    let mode: String?
    let code: String?

    init(_ link: String) {
        var fields = FormFields(ofLink: link)
        // Firebase wraps the link in another link, which opens the application.
        if fields["oobCode"] == nil, let inner = fields["link"] ?? fields["deep_link_id"] {
            fields = FormFields(ofLink: inner)
        }
        mode = fields["mode"]
        code = fields["oobCode"]
    }

    /// The code in a text that a person pasted: a link with a code, or the bare code.
    static func code(in text: String) -> String {
        if let code = ActionLink(text).code { return code }
        return text.utf8.contains { "?&=/:".utf8.contains($0) } ? "" : text
    }
}
