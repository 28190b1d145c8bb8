import Base
import Glibc
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

@Suite struct AuthErrorTests {
    /// Words that are not reasons: kinds of codes, causes in metadata, places in templates.
    private static let otherWords: Set<String> = [
        "PASSWORD_RESET", "EMAIL_SIGNIN", "VERIFY_EMAIL", "VERIFY_AND_CHANGE_EMAIL", "RECOVER_EMAIL",
        "REVOKED_BY_REUSE",
        "PASSWORD_CHANGED", "SIGNED_OUT", "APP_NAME", "DISPLAY_NAME", "NEW_EMAIL", "NOT_ME_LINK",
    ]

    @Test func `Every reason the protocol's comments name is one`() throws {
        let folder = #filePath.split(separator: "/").dropLast(3).map(String.init).joined(separator: "/")
        var (words, values): (Set<String>, Set<String>) = ([], [])
        let directory = try #require(opendir("/\(folder)/proto/postern/v1"))
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".proto"), name != "reasons.proto" else { continue }
            for line in try read("/\(folder)/proto/postern/v1/\(name)").split(separator: "\n") {
                let isComment = line.drop { $0 == " " }.starts(with: "//")
                if isComment { words.formUnion(Self.names(in: line)) } else { values.formUnion(Self.names(in: line)) }
            }
        }
        // A comment may name an enum's value, with or without the enum's name.
        let reasons = words.subtracting(Self.otherWords).filter { word in !values.contains { $0.hasSuffix(word) } }
        #expect(reasons.contains("ADMIN_RESTRICTED_OPERATION"), "the protocol was not read")
        #expect(reasons.subtracting(Reason.allCases.map(\.name)).sorted() == [])
    }

    /// The UPPER_SNAKE words of a line.
    private static func names(in line: Substring) -> [String] {
        let words: [Substring] = line.split { !($0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_")) }
        return words.filter { $0.contains("_") && $0.first?.isUppercase == true && $0.count > 4 }.map { String($0) }
    }

    private func read(_ path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(arguments: [
        ("ADMIN_RESTRICTED_OPERATION", 17085), ("ADMIN_ONLY_OPERATION", 17085), ("EMAIL_EXISTS", 17007),
        ("INVALID_LOGIN_CREDENTIALS", 17004), ("CREDENTIAL_TOO_OLD_LOGIN_AGAIN", 17014), ("TOKEN_EXPIRED", 17021),
        ("CONNECTION_LOST", 17020), ("CALLER_UNAUTHENTICATED", 17023),
    ])
    func `Reasons have FirebaseAuth's numbers`(_ reason: String, _ number: Int) {
        #expect(AuthError(Failure(.internal, reason, "")).code.rawValue == number)
    }

    @Test func `A reason of a newer server is judged by its status`() {
        #expect(AuthError(Failure(.unavailable, "NEW", "")).code == .networkError)
        #expect(AuthError(Failure(.resourceExhausted, "NEW", "")).code == .tooManyRequests)
        #expect(AuthError(Failure(.permissionDenied, "NEW", "")).code == .operationNotAllowed)
        #expect(AuthError(Failure(.dataLoss, "NEW", "")).code == .internalError)
    }

    @Test func `An error carries all that the server said`() throws {
        let failure = Failure(
            .failedPrecondition, "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL", "sign in first",
            metadata: [
                .init("email", "ada@example.com"), .init("pending_token", "p"), .init("request_id", "r-1"),
            ], retryAfter: .seconds(3), guidance: .init(locale: "en", message: "ask Bob", url: "https://help.example"))
        let attempted = OAuthProvider.credential(providerID: "facebook.com", accessToken: "a")
        let error = AuthError(failure, attempted: attempted)
        #expect(error.code == .accountExistsWithDifferentCredential)
        #expect(error.email == "ada@example.com")
        #expect(error.requestID == "r-1")
        #expect(error.retryAfter == .seconds(3))
        #expect(error.guidance?.message == "ask Bob")
        #expect(error.guidance?.url == "https://help.example")
        #expect(error.updatedCredential?.provider == "facebook.com")
        #expect(error.failure == failure)
        #expect(!error.isRetryable)
    }

    @Test func `Only what may pass by itself can be tried again`() {
        #expect(AuthError(Failure(.unavailable, Reason.connectionLost.name, "")).isRetryable)
        #expect(AuthError(Failure(.deadlineExceeded, Reason.deadlineExceeded.name, "")).isRetryable)
        #expect(AuthError(Failure(.resourceExhausted, "TOO_MANY_ATTEMPTS_TRY_LATER", "")).isRetryable)
        #expect(!AuthError(Failure(.resourceExhausted, Reason.messageTooLarge.name, "")).isRetryable)
        #expect(!AuthError(Failure(.unavailable, Reason.channelClosed.name, "")).isRetryable)
        #expect(!AuthError(Failure(.unauthenticated, "INVALID_LOGIN_CREDENTIALS", "")).isRetryable)
    }

    @Test func `Some errors leave open whether the call was done`() {
        for reason: Reason in [.connectionLost, .deadlineExceeded, .malformedResponse, .storeUnavailable] {
            #expect(AuthError(Failure(reason, "")).isLostAnswer)
        }
        for reason: Reason in [.nodeBehind, .connectionFailed, .serverOverloaded, .userNotFound] {
            #expect(!AuthError(Failure(reason, "")).isLostAnswer)
        }
    }

    @Test func `The cause of a session's end is typed`() {
        func cause(_ word: String) -> AuthError.SessionEndCause? {
            AuthError(Failure(.unauthenticated, "TOKEN_EXPIRED", "", metadata: [.init("cause", word)])).cause
        }
        #expect(cause("REVOKED_BY_REUSE") == .revokedByReuse)
        #expect(cause("PASSWORD_CHANGED") == .passwordChanged)
        #expect(cause("SIGNED_OUT") == .signedOut)
        #expect(cause("ADMIN") == .admin)
        #expect(cause("EXPIRED") == .expired)
        #expect(cause("NEWER") == .other("NEWER"))
    }

    @Test func `A wrong nonce has a code of its own`() {
        let failure = Failure(.invalidArgument, "INVALID_IDP_RESPONSE", "", metadata: [.init("detail", "WRONG_NONCE")])
        #expect(AuthError(failure).code == .missingOrInvalidNonce)
    }

    @Test func `Credentials do not print their secrets`() {
        let credential = EmailAuthProvider.credential(withEmail: "ada@example.com", password: "hunter22")
        #expect(!"\(credential)".contains("hunter22"))
        #expect(!String(reflecting: credential.kind).contains("hunter22"))
        let link = EmailAuthProvider.credential(withEmail: "ada@example.com", link: "https://a/?oobCode=hunter22")
        #expect(!String(reflecting: link.kind).contains("hunter22"))
    }
}
