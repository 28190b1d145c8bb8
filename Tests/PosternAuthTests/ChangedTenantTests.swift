import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// `Auth.tenantID` is set while somebody is signed in: the user stays who it is, and the next sign-in is the other
/// tenant's.
@Suite struct ChangedTenantTests {
    private static func makeTenant(_ application: Application) async throws {
        _ = try await TenantsClient(channel: application.admin).create(
            TenantsCreateRequest(
                tenantID: "acme", tenant: Messages.Tenant(enableAnonymousUser: true),
                updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user"])))
    }

    @Test func `The signed-in user stays signed in to its own tenant`() async throws {
        try await Application.run { application in
            try await Self.makeTenant(application)
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage)
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            auth.tenantID = "acme"
            #expect(auth.currentUser === ada && ada.backend.tenantID.isEmpty)
            try await ada.reload()
            _ = try await ada.idToken(forcingRefresh: true)
            var request = ada.createProfileChangeRequest()
            request.displayName = "Ada"
            try await request.commitChanges()
            let again = try application.auth(storage: storage)
            #expect(again.currentUser?.displayName == "Ada" && again.storageError == nil)
        }
    }

    @Test func `An anonymous user of another tenant is not the one to be signed in`() async throws {
        try await Application.run { application in
            try await Self.makeTenant(application)
            let auth = try application.auth()
            let former = try await auth.signInAnonymously().user
            #expect(try await auth.signInAnonymously().user === former)
            auth.tenantID = "acme"
            let user = try await auth.signInAnonymously().user
            #expect(user !== former && user.backend.tenantID == "acme" && user.uid != former.uid)
            #expect(auth.currentUser === user)
            #expect(try await auth.signInAnonymously().user === user)
        }
    }

    @Test func `The storage keeps no user of another tenant than the configuration's`() async throws {
        try await Application.run { application in
            try await Self.makeTenant(application)
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage)
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            auth.tenantID = "acme"
            let other = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(auth.currentUser === other && other.uid != ada.uid)
            _ = try await other.idToken(forcingRefresh: true)
            let restarted = try application.auth(storage: storage)
            #expect(restarted.currentUser == nil && restarted.storageError == nil)
            auth.tenantID = nil
            try await auth.updateCurrentUser(ada)
            #expect(try application.auth(storage: storage).currentUser?.uid == ada.uid)
        }
    }
}
