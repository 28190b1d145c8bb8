public import Base
public import Messages

/// The link of a mail: the action page's URL with the parameters that the page needs.
public enum ActionLink {
    public static func make(
        base: Text, _ type: OobRequestType, code: Text, tenantID: Text, continueURL: Text
    ) -> Text {
        var query = "mode=\(mode(type))&oobCode=\(code)"
        if !tenantID.isEmpty { query += "&tenantId=\(encoded(tenantID))" }
        if !continueURL.isEmpty { query += "&continueUrl=\(encoded(continueURL))" }
        return Text("\(base)\(base.bytes.contains(UInt8(ascii: "?")) ? "&" : "?")\(query)")
    }

    private static func mode(_ type: OobRequestType) -> String {
        switch type {
        case .verifyEmail, .unspecified: "verifyEmail"
        case .passwordReset: "resetPassword"
        case .emailSignin: "signIn"
        case .verifyAndChangeEmail: "verifyAndChangeEmail"
        case .recoverEmail: "recoverEmail"
        case .rejectEmail: "rejectEmail"
        case .revertSecondFactorAddition: "revertSecondFactorAddition"
        }
    }

    private static func encoded(_ text: Text) -> String {
        String(decoding: PercentEncoding.encode(text), as: UTF8.self)
    }
}
