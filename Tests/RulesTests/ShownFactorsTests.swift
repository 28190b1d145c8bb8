import Base
import Messages
import Rules
import Testing

@Suite struct ShownFactorsTests {
    private func user(_ factorIDs: [Text]) -> User {
        var user = User(tenantID: "acme", uid: "ada")
        user.secondFactors = factorIDs.map { SecondFactor(factorID: $0, kind: .totp) }
        return user
    }

    private func shown(_ factorIDs: Text...) -> StoredShownFactors { StoredShownFactors(factorIDs: factorIDs) }

    @Test func `A session keeps every factor that it showed`() {
        var session = StoredSession(tenantID: "acme", uid: "ada")
        #expect(session.factorsShown == shown())
        #expect(!session.mayHaveShown("a"))
        session.noteShown("totp", "a", shown("a"), of: user(["a", "b"]))
        session.noteShown("totp", "b", shown("b"), of: user(["a", "b"]))
        session.noteShown("recovery_code", .empty, shown("a"), of: user(["a", "b"]))
        #expect(session.secondFactor == "recovery_code" && session.secondFactorID.isEmpty)
        #expect(session.factorsShown == shown("a", "b"))
        #expect(!session.mayHaveShown("c"))
    }

    @Test func `Somebody who enrols and withdraws all day does not make the session longer`() {
        var session = StoredSession(tenantID: "acme", uid: "ada")
        session.noteShown("totp", "a", shown("a"), of: user(["a"]))
        for number in 0..<100 {
            let id = Text("f\(number)")
            session.noteShown("totp", id, shown(id), of: user(["a", id]))
        }
        #expect(session.factorsShown == shown("a", "f99"))
    }

    /// A row of an older server names the last factor alone.
    @Test func `A session whose factors are not known may have shown any, also later`() {
        var session = StoredSession(tenantID: "acme", uid: "ada", secondFactor: "totp", secondFactorID: "a")
        #expect(session.factorsShown == nil)
        #expect(session.mayHaveShown("b"))
        session.noteShown("totp", "c", shown("c"), of: user(["a", "b", "c"]))
        #expect(session.mayHaveShown("b"))
        // The recovery code is one that an older server made.
        var other = StoredSession(tenantID: "acme", uid: "ada")
        other.noteShown("recovery_code", .empty, nil, of: user(["a"]))
        #expect(other.mayHaveShown("a"))
    }

    /// What is stored tells "none" from "not known".
    @Test func `An empty list of factors survives the store`() throws {
        var session = StoredSession(tenantID: "acme", uid: "ada")
        session.noteShown("totp", "a", shown("a"), of: user([]))
        let read = try StoredSession(decoding: session.encoded())
        #expect(read.factorsShown == shown())
        #expect(read == session)
    }

    @Test func `Recovery codes may be those of whoever had a factor when they were made`() {
        var stored = StoredSecondFactors(recoveryCodes: [[1]])
        #expect(stored.recoveryCodesMayBe(of: "a"))
        stored.setRecoveryCodes([[2]], madeAfter: shown("a"))
        #expect(stored.recoveryCodesMayBe(of: "a"))
        #expect(!stored.recoveryCodesMayBe(of: "b"))
        stored.voidRecoveryCodes()
        #expect(stored == StoredSecondFactors())
    }
}
