import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// Who is the current user, and that users live on when they are not the current one.
@Suite struct CurrentUserTests {
    @Test func `After signing up, and after signing in, the user is the current one`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            #expect(auth.currentUser == nil)
            let made = try await auth.createUser(withEmail: "ada@example.com", password: password)
            #expect(auth.currentUser === made.user)
            #expect(made.additionalUserInfo.isNewUser)
            let other = try application.auth()
            let signedIn = try await other.signIn(withEmail: "ADA@example.com", password: password)
            #expect(other.currentUser === signedIn.user)
            #expect(!signedIn.additionalUserInfo.isNewUser)
            #expect(signedIn.user.uid == made.user.uid)
            #expect(signedIn.user.email == "ada@example.com")
            #expect(signedIn.user.providerData.map(\.providerID) == ["password"])
            #expect(signedIn.user.metadata.creationDate == application.server.clock.clock.now())
        }
    }

    @Test func `The state survives a restart of the application, without asking the server`() async throws {
        try await Application.run { application in
            try await withTemporaryDirectory { directory in
                let storage = FileStorage(path: "\(directory)/auth.json")
                let auth = try application.auth(storage: storage)
                let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
                var request = user.createProfileChangeRequest()
                request.displayName = "Ada"
                request.photoURL = "https://example.com/ada"
                // A call that returned has saved its change: the application may end now.
                try await request.commitChanges()

                let unreachable = try application.auth(storage: storage, through: "127.0.0.1:1")
                let kept = try #require(unreachable.currentUser)
                #expect(kept.uid == user.uid)
                #expect(kept.email == "ada@example.com")
                #expect(kept.displayName == "Ada")
                #expect(kept.photoURL == "https://example.com/ada")
                #expect(kept.providerData == user.providerData)
                #expect(kept.metadata == user.metadata)
                #expect(try await kept.idToken() == user.idToken())
                #expect(unreachable.storageError == nil)

                let again = try application.auth(storage: storage)
                try await #require(again.currentUser).reload()
            }
        }
    }

    @Test func `After signing out there is no current user, and the held user still works`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(storage.load() != nil)
            try await auth.signOut()
            #expect(auth.currentUser == nil)
            #expect(storage.load() == nil)
            #expect(try application.auth(storage: storage).currentUser == nil)

            try await user.reload()
            _ = try await user.idToken(forcingRefresh: true)
            var request = user.createProfileChangeRequest()
            request.displayName = "Ada"
            try await request.commitChanges()
            #expect(user.displayName == "Ada")
            #expect(auth.currentUser == nil)
            #expect(storage.load() == nil)
        }
    }

    @Test func `Several users are held at once and work whoever is current`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let bob = try await auth.createUser(withEmail: "bob@example.com", password: password).user
            #expect(auth.currentUser === bob)
            _ = try await ada.idToken(forcingRefresh: true)
            _ = try await bob.idToken(forcingRefresh: true)
            try await ada.updatePassword(to: "another horse")
            try await bob.reload()
            #expect(auth.currentUser === bob)

            try await auth.updateCurrentUser(ada)
            #expect(auth.currentUser === ada)
            try await auth.signOut()
            try await auth.updateCurrentUser(ada)
            #expect(auth.currentUser === ada)
        }
    }

    @Test func `A user of another Auth moves to this one's storage, and back when this one signs it out`() async throws
    {
        try await Application.run { application in
            let (first, second) = (InMemoryStorage(), InMemoryStorage())
            let auth = try application.auth(storage: first)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let other = try application.auth(storage: second)
            try await other.updateCurrentUser(user)
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user && other.currentUser === user)
            #expect(first.load() == nil && second.load() == user.saved.encoded())
            // A restart of the first application does not find the user: two holders of one token would be a theft.
            #expect(try application.auth(storage: first).currentUser == nil)

            try await other.signOut()
            #expect(second.load() == nil)
            try await until { first.load() == user.saved.encoded() }
            _ = try await user.idToken(forcingRefresh: true)
            #expect(first.load() == user.saved.encoded() && second.load() == nil)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `A user of the same server is taken over, however its address is written`() async throws {
        try await Application.run { application in
            let user = try await application.auth().createUser(withEmail: "ada@example.com", password: password).user
            let address = "127.0.0.1:0\(application.server.port)"
            let other = try application.auth(through: address)
            try await other.updateCurrentUser(user)
            #expect(other.currentUser === user)
        }
    }

    @Test func `A user of another tenant, server or key is not taken over`() async throws {
        try await Application.run { application in
            let user = try await application.auth().createUser(withEmail: "ada@example.com", password: password).user
            let storage = InMemoryStorage()
            let elsewhere = try application.auth(storage: storage, through: "127.0.0.1:1")
            let otherServer = try await error { try await elsewhere.updateCurrentUser(user) }
            #expect(otherServer.code == .tenantIDMismatch)
            let channel = application.admin
            let byChannel = try Auth(configuration: Auth.Configuration(channel: channel))
            let otherKey = try await error { try await byChannel.updateCurrentUser(user) }
            #expect(otherKey.code == .tenantIDMismatch)
            #expect(elsewhere.currentUser == nil && byChannel.currentUser == nil && storage.load() == nil)

            let sharing = try Auth(configuration: Auth.Configuration(channel: channel))
            let guest = try await byChannel.signInAnonymously().user
            try await sharing.updateCurrentUser(guest)
            #expect(sharing.currentUser === guest)

            let foreign = try application.auth(tenantID: "acme")
            let refusal = try await error { try await foreign.updateCurrentUser(user) }
            #expect(refusal.code == .tenantIDMismatch)
            #expect(foreign.currentUser == nil)
        }
    }

    @Test func `Each tenant has users of its own, and a storage is one tenant's`() async throws {
        try await Application.run { application in
            _ = try await TenantsClient(channel: application.admin).create(TenantsCreateRequest(tenantID: "acme"))
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage, tenantID: "acme")
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(auth.tenantID == "acme" && user.tenantID == "acme")
            _ = try await user.idToken(forcingRefresh: true)
            let visitor = try application.auth()
            let unknown = try await error {
                _ = try await visitor.signIn(withEmail: "ada@example.com", password: password)
            }
            #expect(unknown.code == .invalidCredential)

            let errors = Recording<AuthStorageError>()
            let other = try application.auth(storage: storage, storageErrors: errors)
            #expect(other.currentUser == nil)
            #expect(errors.elements.map(\.kind) == [.otherTenant])
            let again = try #require(try application.auth(storage: storage, tenantID: "acme").currentUser)
            #expect(again.tenantID == "acme")
            try await again.reload()
        }
    }

    @Test func `Reloading shows what another device changed`() async throws {
        try await Application.run { application in
            let (laptop, phone) = (try application.auth(), try application.auth())
            let onLaptop = try await laptop.createUser(withEmail: "ada@example.com", password: password).user
            let onPhone = try await phone.signIn(withEmail: "ada@example.com", password: password).user
            var request = onPhone.createProfileChangeRequest()
            request.displayName = "Countess"
            try await request.commitChanges()
            #expect(onLaptop.displayName == nil)
            try await onLaptop.reload()
            #expect(onLaptop.displayName == "Countess")
        }
    }

    @Test func `Without a current user signing out does nothing`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            try await auth.signOut()
            #expect(auth.currentUser == nil)
        }
    }
}
