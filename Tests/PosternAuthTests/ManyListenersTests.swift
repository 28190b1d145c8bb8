import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// Many users of one process, a back end for browsers for instance, share one channel.
@Suite(.timeLimit(.minutes(2))) struct ManyListenersTests {
    @Test func `Three hundred listening users on one channel leave room for calls, and all of them hear`() async throws
    {
        try await Application.run { application in
            let channel = try Channel(
                address: "127.0.0.1:\(application.server.port)", credentials: .apiKey(application.server.adminKey))
            var auths: [Auth] = []
            let told = Recording<String>()
            for _ in 0..<300 {
                let auth = try Auth(configuration: Auth.Configuration(channel: channel))
                try await auth.signInAnonymously()
                auth.addStateDidChangeListener { _, user in if user == nil { told.append("signed out") } }
                auths.append(auth)
            }
            try await until { application.streamCount == 300 }
            for auth in auths { _ = try await auth.currentUser?.idToken(forcingRefresh: true) }
            for auth in auths {
                let uid = try #require(auth.currentUser?.uid)
                _ = try await UsersClient(channel: application.admin).revokeTokens(
                    UsersRevokeTokensRequest(uid: Text(uid)))
            }
            try await until { told.elements.count == 300 }
            await channel.shutdown()
        }
    }
}
